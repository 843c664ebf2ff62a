"""vLLM on this machine's processor: a Llama with random weights, its server, and what
goodput says of it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

PORT = 8231
URL = f"http://127.0.0.1:{PORT}"
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
    "intermediate_size": 1408, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 4000,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
    "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "float32",
    "tie_word_embeddings": False,
}


class Server:
    """vLLM until the end of the block."""

    def __init__(self, vllm, model, settings, folder, *more):
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        self.command = [vllm, "serve", str(model), "--load-format", "dummy", "--dtype", "float32",
                        "--port", str(PORT), "--enforce-eager",
                        "--enable-prompt-tokens-details", "--served-model-name", "tiny", *flags, *more]
        self.log = open(folder / "server.log", "a")

    def __enter__(self):
        environment = dict(os.environ, VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind",
                           OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log,
                                        env=environment, start_new_session=True)
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{URL}/health", timeout=1)
                return self
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"the server ended at once; see {self.log.name}")
                time.sleep(0.5)
        self.__exit__()
        sys.exit(f"the server did not become ready within two minutes; see {self.log.name}")

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        time.sleep(1)


def call(goodput, *arguments):
    """What goodput says as JSON, of a run that it calls INVALID too."""
    done = subprocess.run([goodput, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def version(vllm):
    """The last word of what vLLM says of itself: it says more before."""
    told = subprocess.run([vllm, "--version"], capture_output=True, text=True).stdout.split()
    return f"vLLM {told[-1]}" if told else "vLLM"


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    return f"{os.cpu_count()} × {name}"


def make_model(folder, vllm):
    """The configuration and a tokenizer; vLLM makes the weights."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(MODEL))
    python = pathlib.Path(vllm).parent / "python"
    text = pathlib.Path(__file__).resolve().parents[1] / "docs"
    train = """
import pathlib, sys
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers
folder, text = sys.argv[1:]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=["<s>", "</s>"],
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
tokenizer.train([str(path) for path in sorted(pathlib.Path(text).glob("*.md"))], trainer)
tokenizer.save(folder + "/tokenizer.json")
"""
    subprocess.run([str(python), "-c", train, str(model), str(text)], check=True)
    (model / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }))
    return model
