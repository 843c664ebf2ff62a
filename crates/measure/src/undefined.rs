//! Why a value is missing. Missing is never zero.

use crate::metric::Text;

macro_rules! reasons {
    ($($variant:ident $name:literal $text:literal $zh:literal;)*) => {
        /// Why a metric has no value for a request or a run. One line a
        /// reason: name in JSON, words in English, words in Chinese.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Undefined { $(#[doc = $text] $variant,)* }

        impl Undefined {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The reason in English, to stand after "n/a".
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The reason in both languages.
            pub const fn texts(self) -> Text {
                match self { $(Self::$variant => Text { en: $text, zh: $zh },)* }
            }
        }
    };
}

reasons! {
    NotOk "not_ok" "the request did not end well" "请求未正常结束";
    NotSent "not_sent" "the request was never sent" "请求未发出";
    NoSamples "no_samples" "no request has a value" "没有任何请求有该值";
    NoOutput "no_output" "nothing came that could be timed" "没有可计时的输出";
    NoGeneration "no_generation" "this kind of request generates no tokens" "此类请求不生成 token";
    NotStreamed "not_streamed" "the answer came at one instant" "回答一次性到达，没有流式输出";
    NoVisibleText "no_visible_text" "no visible text came" "没有可见文本";
    NoReasoning "no_reasoning" "no reasoning came before the text" "文本之前没有思考内容";
    OneToken "one_token" "one output token has no gap" "只有一个输出 token，没有间隔";
    OneArrival "one_arrival" "one arrival has no gap" "只有一次到达，没有间隔";
    NoTokenCount "no_token_count" "the number of output tokens is unknown" "输出 token 数未知";
    NoPromptCount "no_prompt_count" "the number of prompt tokens is unknown" "输入 token 数未知";
    SeveralChoices "n_gt_1" "more than one choice shares the stream" "一个流里有多个候选回答";
    HiddenReasoning "hidden_reasoning" "part of the output was never shown" "部分输出（思考）未展示";
    FirstChunkUnknown "first_chunk_unknown" "the tokens of the first event are unknown or one" "首个事件的 token 数未知或为一";
    ManyTokensPerChunk "many_tokens_per_chunk" "chunks carry several tokens; spreading a gap over them would hide stalls" "每个数据块含多个 token，平摊间隔会掩盖停顿";
    NoSlo "no_slo" "no SLO was given (--slo or --goodput)" "没有给出 SLO（--slo 或 --goodput）";
    NoTime "no_time" "the window has no length" "时间窗口长度为零";
    Undecided "undecided" "no request could be judged" "没有可判定的请求";
    NoSteadyWindow "no_steady_window" "the run has no steady window" "没有稳态窗口";
    NotCollected "not_collected" "the server's metrics were not read" "没有读取服务端指标";
    NoHardware "no_hardware" "model and accelerator are not given (--model-shape, --accelerator)" "未给出模型与加速器（--model-shape、--accelerator）";
    NoPrice "no_price" "no price is given (--gpu-price-per-hour)" "未给出价格（--gpu-price-per-hour）";
    EventsNotKept "events_not_kept" "the events of single requests were not kept" "没有保留单个请求的各个事件";
    NotInFile "not_in_file" "the imported file does not hold it" "导入的文件中没有该值";
    NeedsText "needs_text" "the definition re-tokenises the text, which was not kept" "该口径需要重新切分文本，而文本未保留";
}
