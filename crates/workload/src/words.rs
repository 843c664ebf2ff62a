//! The words of synthetic prompts.
//!
//! Every word here, with a space before it, is one token in each of five public
//! vocabularies that were tried: cl100k and o200k (OpenAI), GPT-2's, Llama 3's
//! and Mistral's first one with 32 000 entries. So are the determiners and
//! conjunctions with a capital. A full stop or a comma is one token as well.
//! So prompts have the length asked for on models with such vocabularies: 200
//! prompts of 512 came out at 512 in four of the five and at 513 in GPT-2's. On
//! other vocabularies they are off; exact lengths need the model's tokenizer.
//!
//! Changing a list changes the prompts of every seed: compare no run across it.

/// Words that open a noun phrase.
#[rustfmt::skip]
pub(crate) const DETERMINERS: &[&str] = &[
    "the", "each", "every", "this", "that", "some", "one", "another", "our", "their", "his",
    "her", "my", "your", "its", "no", "any",
];

/// Words between a determiner and its noun.
#[rustfmt::skip]
pub(crate) const ADJECTIVES: &[&str] = &[
    "able", "active", "actual", "ancient", "angry", "annual", "bad", "basic",
    "beautiful", "big", "bitter", "black", "blue", "bold", "brief", "bright", "broad", "broken",
    "brown", "busy", "calm", "careful", "central", "certain", "cheap", "chief", "civil", "clean",
    "clear", "clever", "close", "cold", "common", "complete", "complex", "cool", "correct",
    "critical", "curious", "current", "daily", "dark", "dead", "deep", "different", "difficult",
    "direct", "dirty", "double", "dry", "dull", "early", "easy", "eastern", "empty", "entire",
    "equal", "exact", "extra", "fair", "false", "familiar", "famous", "fast", "final", "fine",
    "firm", "flat", "foreign", "formal", "former", "free", "fresh", "friendly", "full", "general",
    "gentle", "good", "grand", "gray", "great", "green", "happy", "hard", "heavy", "hidden",
    "high", "honest", "hot", "huge", "human", "ideal", "important", "inner", "large", "late",
    "legal", "light", "likely", "little", "local", "long", "loose", "loud", "low", "main", "major",
    "minor", "mixed", "modern", "moral", "narrow", "native", "natural", "near", "neat", "new",
    "nice", "noble", "normal", "northern", "odd", "old", "open", "ordinary", "original", "outer",
    "pale", "past", "perfect", "plain", "pleasant", "poor", "popular", "possible", "present",
    "pretty", "previous", "private", "proper", "proud", "public", "pure", "quick", "quiet",
    "rapid", "rare", "ready", "real", "recent", "red", "regular", "rich", "right", "rough",
    "round", "royal", "rural", "safe", "second", "secret", "senior", "separate", "serious",
    "severe", "sharp", "short", "silent", "silver", "similar", "simple", "single", "slight",
    "slow", "small", "smart", "smooth", "social", "soft", "solid", "special", "spare", "square",
    "stable", "standard", "steady", "strange", "strict", "strong", "subtle", "sudden", "sure",
    "sweet", "tall", "thick", "thin", "third", "tight", "tiny", "true", "typical", "unique",
    "upper", "useful", "usual", "various", "vast", "visible", "warm", "weak", "western", "wet",
    "white", "whole", "wide", "wild", "wise", "wooden", "wrong", "yellow", "young",
];

/// Things and people. Nonces are drawn from these.
#[rustfmt::skip]
pub(crate) const NOUNS: &[&str] = &[
    "account", "act", "action", "address", "age", "agent", "agreement", "air", "amount", "animal",
    "answer", "apple", "area", "argument", "arm", "army", "art", "article", "artist", "attack",
    "attempt", "author", "baby", "back", "bag", "ball", "band", "bank", "bar", "base", "basis",
    "battle", "beach", "bear", "beauty", "bed", "bell", "bird", "block", "blood", "board", "boat",
    "body", "bone", "book", "border", "boss", "bottle", "bottom", "box", "boy", "branch", "bread",
    "bridge", "brother", "building", "bus", "business", "camera", "camp", "capital", "captain",
    "car", "card", "care", "case", "castle", "cat", "cause", "cell", "center", "century", "chain",
    "chair", "chance", "change", "chapter", "charge", "child", "choice", "church", "circle",
    "citizen", "city", "class", "client", "climate", "clock", "cloth", "cloud", "club", "coach",
    "coast", "coat", "code", "coffee", "color", "column", "committee", "company", "computer",
    "concept", "contract", "corner", "cost", "council", "country", "couple", "course", "court",
    "cousin", "cover", "craft", "crew", "crowd", "culture", "cup", "customer", "cycle", "danger",
    "date", "daughter", "day", "deal", "death", "decade", "decision", "degree", "desert", "design",
    "desk", "detail", "device", "dinner", "direction", "director", "discussion", "distance",
    "doctor", "document", "dog", "door", "doubt", "dream", "dress", "drink", "driver", "earth",
    "east", "edge", "editor", "effect", "effort", "egg", "end", "enemy", "energy", "engine",
    "entry", "error", "evening", "event", "evidence", "example", "exchange", "exercise", "expert",
    "eye", "face", "fact", "factor", "factory", "family", "farm", "father", "feature", "field",
    "figure", "file", "film", "finger", "fire", "fish", "flag", "flight", "floor", "flow",
    "flower", "food", "foot", "force", "forest", "form", "frame", "friend", "front", "fruit",
    "function", "future", "game", "garden", "gate", "gift", "girl", "glass", "goal", "gold",
    "government", "grass", "ground", "group", "growth", "guard", "guest", "guide", "gun", "hair",
    "half", "hall", "hand", "head", "heart", "heat", "hill", "history", "hole", "holiday", "home",
    "hope", "horse", "hospital", "hotel", "hour", "house", "ice", "idea", "image", "impact",
    "industry", "island", "issue", "item", "job", "journey", "judge", "key", "kind", "king",
    "kitchen", "knife", "lady", "lake", "land", "language", "law", "lawyer", "leader", "leaf",
    "leg", "lesson", "letter", "level", "library", "life", "line", "list", "machine", "manager",
    "map", "mark", "market", "master", "match", "material", "matter", "meal", "measure", "meeting",
    "member", "memory", "message", "metal", "method", "middle", "milk", "mind", "minute", "mirror",
    "model", "moment", "money", "month", "moon", "morning", "mother", "motion", "motor",
    "mountain", "mouth", "movement", "music", "name", "nation", "nature", "neck", "need",
    "neighbor", "network", "night", "noise", "north", "nose", "note", "novel", "number", "object",
    "ocean", "offer", "office", "officer", "oil", "opinion", "orange", "order", "owner", "page",
    "pain", "paint", "pair", "paper", "parent", "park", "part", "partner", "party", "path",
    "pattern", "peace", "people", "period", "person", "phone", "picture", "piece", "pilot",
    "place", "plan", "plane", "plant", "plate", "player", "poem", "poet", "point", "police",
    "pool", "port", "position", "post", "pound", "power", "president", "price", "prince", "prison",
    "problem", "process", "product", "program", "project", "promise", "purpose", "queen",
    "question", "race", "radio", "rain", "range", "rate", "reason", "record", "region", "report",
    "request", "result", "return", "river", "road", "rock", "role", "roof", "room", "root",
    "route", "row", "rule", "salt", "sand", "scale", "scene", "school", "science", "sea", "season",
    "seat", "section", "seed", "sense", "sentence", "series", "service", "shadow", "shape",
    "share", "ship", "shirt", "shoe", "shop", "shore", "shoulder", "sign", "signal", "sister",
    "site", "skill", "skin", "sky", "smile", "snow", "society", "soil", "soldier", "solution",
    "son", "song", "sound", "source", "south", "space", "speaker", "speech", "speed", "spirit",
    "spring", "staff", "stage", "star", "state", "station", "step", "stone", "store", "storm",
    "story", "stranger", "stream", "street", "strength", "structure", "student", "study", "style",
    "subject", "success", "sugar", "summer", "sun", "supply", "surface", "survey", "symbol",
    "system", "table", "task", "teacher", "team", "temple", "term", "test", "text", "theme",
    "theory", "thing", "thought", "threat", "ticket", "time", "title", "tool", "top", "topic",
    "touch", "tour", "tower", "town", "track", "trade", "train", "travel", "treatment", "tree",
    "trial", "trip", "truck", "truth", "uncle", "union", "unit", "valley", "value", "vehicle",
    "version", "view", "village", "vision", "voice", "volume", "wall", "war", "watch", "water",
    "wave", "way", "weather", "week", "weight", "west", "wheel", "wife", "wind", "window", "wine",
    "winter", "woman", "wood", "word", "work", "worker", "world", "writer", "year", "youth",
    "zone",
];

/// What happened: past tense, with or without an object.
#[rustfmt::skip]
pub(crate) const VERBS: &[&str] = &[
    "accepted", "added", "affected", "allowed", "answered", "appeared", "applied", "approached",
    "asked", "assumed", "became", "began", "believed", "bought", "broke", "brought", "built",
    "called", "carried", "caught", "caused", "changed", "chose", "claimed", "closed", "collected",
    "compared", "completed", "considered", "contained", "controlled", "covered", "created",
    "crossed", "cut", "decided", "described", "designed", "developed", "discovered", "drew",
    "drove", "entered", "established", "examined", "expected", "explained", "expressed", "faced",
    "failed", "feared", "fell", "felt", "filled", "finished", "followed", "forced", "forgot",
    "formed", "fought", "found", "gained", "gave", "got", "grew", "guided", "handled", "heard",
    "held", "helped", "hit", "ignored", "included", "increased", "joined", "kept", "killed",
    "knew", "laid", "learned", "led", "left", "lifted", "liked", "lost", "loved", "made",
    "managed", "marked", "meant", "measured", "met", "moved", "needed", "noted", "noticed",
    "obtained", "offered", "opened", "ordered", "owned", "paid", "passed", "placed", "planned",
    "played", "pointed", "prepared", "presented", "produced", "promised", "proved", "provided",
    "pulled", "pushed", "put", "raised", "reached", "read", "received", "recorded", "reduced",
    "refused", "remained", "remembered", "removed", "repeated", "replaced", "reported", "required",
    "returned", "revealed", "saved", "saw", "sent", "served", "set", "shared", "showed", "sold",
    "solved", "spent", "stood", "stopped", "studied", "suggested", "supported", "taught", "tested",
    "told", "took", "touched", "tried", "turned", "understood", "used", "visited", "waited",
    "walked", "wanted", "warned", "watched", "wished", "won", "wore", "worked", "wrote",
];

/// How or when it happened.
#[rustfmt::skip]
pub(crate) const ADVERBS: &[&str] = &[
    "again", "almost", "already", "also", "always", "away", "carefully", "clearly", "closely",
    "directly", "early", "easily", "even", "exactly", "fully", "gently", "hardly", "here",
    "indeed", "instead", "later", "mostly", "nearly", "never", "often", "once", "only", "perhaps",
    "possibly", "probably", "quickly", "quietly", "rarely", "really", "recently", "simply",
    "slowly", "sometimes", "soon", "still", "strongly", "suddenly", "there", "today", "together",
    "twice", "usually", "well", "yesterday",
];

/// Words that tie a second noun phrase to the first.
#[rustfmt::skip]
pub(crate) const PREPOSITIONS: &[&str] = &[
    "about", "above", "across", "after", "against", "along", "among", "around", "at", "before",
    "behind", "below", "beside", "between", "beyond", "by", "down", "during", "for", "from", "in",
    "inside", "into", "near", "of", "off", "on", "onto", "out", "outside", "over", "past",
    "through", "to", "toward", "under", "until", "up", "upon", "with", "within", "without",
];

/// Words that tie two clauses.
#[rustfmt::skip]
pub(crate) const CONJUNCTIONS: &[&str] = &[
    "and", "but", "because", "while", "although", "since", "when", "where", "if", "unless", "so",
    "yet",
];

/// Every list, in the order of a lexicon's.
pub(crate) const ALL: &[&[&str]] =
    &[DETERMINERS, ADJECTIVES, NOUNS, VERBS, ADVERBS, PREPOSITIONS, CONJUNCTIONS];
