//! How a planned request ended. Every planned request ends in exactly one
//! [`Outcome`]; a failure is an observation, not an absence.

/// The end of one planned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Finished, with output.
    Ok,
    /// Finished without any output: it enters no latency sample and is not
    /// good for goodput.
    Empty,
    /// Sent, and it went wrong.
    Failed(FailureKind),
    /// Never sent, by our own fault: not the server's failure.
    NotSent(NotSentKind),
    /// Stopped by us: interrupt, end of the run or a stop rule.
    Cancelled,
}

/// Who has to look when a request of some kind failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The serving system.
    Server,
    /// What lies between: names, routes, certificates.
    Network,
    /// The load generator's own limits.
    Client,
}

macro_rules! kinds {
    ($(#[$doc:meta])* $type:ident { $($variant:ident $name:literal $blame:ident $means:literal $hint:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $(#[doc = $means] $variant,)* }

        impl $type {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name used in JSON, exports and tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Who has to look.
            pub const fn blame(self) -> Blame {
                match self { $(Self::$variant => Blame::$blame,)* }
            }

            /// What it means, one sentence.
            pub const fn means(self) -> &'static str {
                match self { $(Self::$variant => $means,)* }
            }

            /// What to try first, one sentence.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)* }
            }

            /// The kind of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }
        }
    };
}

kinds! {
    /// What went wrong with a request that we tried to send. One line a kind:
    /// name, who has to look, meaning, first thing to try.
    FailureKind {
        Dns "dns" Network "The host name did not resolve."
            "Check the host name in --url and the resolver of this machine.";
        Connect "connect" Network "No TCP connection was made."
            "Check that the server listens on this address and port and that no firewall drops the connection.";
        Tls "tls" Network "The TLS handshake failed."
            "Give the certificate authority with --cacert, or --insecure in a lab.";
        HttpStatus "http_status" Server "The server answered with an error status."
            "Read the server's message below; 401 and 403 want a key, 404 another path, 429 a lower rate.";
        Redirect "redirect" Network "The server answered with a redirect, which is not followed under load."
            "Give the final address as --url.";
        BadContentType "bad_content_type" Network "The answer is neither an event stream nor JSON."
            "A login page or proxy may have answered; look at the first bytes shown.";
        UnsupportedEncoding "unsupported_encoding" Server "The body is compressed in a way that was not asked for and is not known."
            "Switch off response compression for the streaming route.";
        MalformedEvent "malformed_event" Server "An event that starts like JSON is not JSON."
            "Look at the bytes shown: a proxy may cut or join events.";
        MalformedHttp "malformed_http" Server "The answer breaks HTTP/1.1 framing."
            "Check that the port speaks HTTP and that no proxy rewrites chunks.";
        InBand "in_band" Server "The server sent an error inside a stream that had started well."
            "Read the server's message below and its log.";
        Aborted "aborted" Server "The server ended the answer with finish reason abort or error."
            "Look at the server's log: shutdown, preemption or a limit.";
        Truncated "truncated" Server "The answer ended in good order but without its end mark."
            "The engine may have died behind a polite gateway; look at both logs.";
        Disconnected "disconnected" Network "The connection closed in the middle of the answer."
            "Look for proxy time-outs, restarts or overload.";
        IdleTimeout "idle_timeout" Server "Nothing arrived for longer than --idle-timeout."
            "Raise --idle-timeout if such pauses are normal for the model.";
        TotalTimeout "total_timeout" Server "The answer was not complete within --request-timeout."
            "Raise --request-timeout or lower the load; the latency is at least the limit.";
        TooLarge "too_large" Server "A line, an event or the body went over the reader's limit."
            "The limits are in the documentation; such an answer is not a token stream.";
    }
}

kinds! {
    /// Why a planned request was never sent. One line a kind, as above.
    NotSentKind {
        ClientResource "client_resource" Client "The load generator had no file descriptor, memory or buffer left."
            "Raise the open-file limit (ulimit -n) or lower the concurrency.";
        PortExhausted "port_exhausted" Client "No local port was free for another connection to this address."
            "Use fewer connections, more source addresses or more targets.";
        WorkerLost "worker_lost" Client "The worker that should have sent it was lost."
            "Look at that worker's log.";
        ParentFailed "parent_failed" Server "An earlier turn of its conversation did not end well, so that it could not be asked."
            "Look at the failures of the turns before it; they are counted by their own kinds.";
    }
}

impl Outcome {
    /// The name of the class, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Empty => "empty",
            Self::Failed(_) => "failed",
            Self::NotSent(_) => "not_sent",
            Self::Cancelled => "cancelled",
        }
    }

    /// The kind inside the class, where there is one.
    pub const fn kind(self) -> Option<&'static str> {
        match self {
            Self::Failed(kind) => Some(kind.name()),
            Self::NotSent(kind) => Some(kind.name()),
            _ => None,
        }
    }

    /// The outcome of these names, as read from a file.
    pub fn from_names(name: &str, kind: Option<&str>) -> Option<Self> {
        match (name, kind) {
            ("ok", _) => Some(Self::Ok),
            ("empty", _) => Some(Self::Empty),
            ("cancelled", _) => Some(Self::Cancelled),
            ("failed", Some(kind)) => FailureKind::from_name(kind).map(Self::Failed),
            ("not_sent", Some(kind)) => NotSentKind::from_name(kind).map(Self::NotSent),
            _ => None,
        }
    }
}
