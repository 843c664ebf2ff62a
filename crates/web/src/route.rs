//! What may be asked: one table of paths.

use hyper::Method;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The page itself.
    Page,
    /// A script or the style sheet, by its name behind `/assets/`.
    Asset(String),
    /// The list of runs.
    Runs,
    /// One run.
    Run(String),
    /// To write what is said about a run.
    Notes(String),
    /// To move a run to the trash.
    Trash(String),
}

/// Why a request asks for nothing that there is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No such path.
    Path,
    /// The path is there, for this method.
    Method(&'static str),
}

const READ: &str = "GET, HEAD";

/// The route of a method and a path.
pub(crate) fn route(method: &Method, path: &str) -> Result<Route, NoRoute> {
    let (allowed, route) = find(path).ok_or(NoRoute::Path)?;
    let fits = allowed.split(", ").any(|name| name == method.as_str());
    if fits { Ok(route) } else { Err(NoRoute::Method(allowed)) }
}

fn find(path: &str) -> Option<(&'static str, Route)> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    Some(match parts.as_slice() {
        [""] => (READ, Route::Page),
        ["assets", name @ ..] if !name.is_empty() => (READ, Route::Asset(name.join("/"))),
        ["api", "runs"] => (READ, Route::Runs),
        ["api", "runs", id] => (READ, Route::Run(decoded(id)?)),
        ["api", "runs", id, "notes"] => ("PUT", Route::Notes(decoded(id)?)),
        ["api", "runs", id, "trash"] => ("POST", Route::Trash(decoded(id)?)),
        _ => return None,
    })
}

/// A part of a path without its escapes. What it then says is judged by
/// whoever looks the name up.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digit = |place: usize| char::from(digits[place]).to_digit(16);
        bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Result<Route, NoRoute> {
        route(&Method::GET, path)
    }

    #[test]
    fn every_route_has_its_method() {
        assert_eq!(get("/"), Ok(Route::Page));
        assert_eq!(get("/assets/vendor/htm.mjs"), Ok(Route::Asset("vendor/htm.mjs".to_owned())));
        assert_eq!(route(&Method::HEAD, "/api/runs"), Ok(Route::Runs));
        assert_eq!(get("/api/runs/a%20b%e4%b8%AD"), Ok(Route::Run("a b中".to_owned())));
        assert_eq!(route(&Method::PUT, "/api/runs/x/notes"), Ok(Route::Notes("x".to_owned())));
        assert_eq!(route(&Method::POST, "/api/runs/x/trash"), Ok(Route::Trash("x".to_owned())));
        assert_eq!(get("/api/runs/x/trash"), Err(NoRoute::Method("POST")));
        assert_eq!(get("/api/runs/x/notes"), Err(NoRoute::Method("PUT")));
        assert_eq!(route(&Method::DELETE, "/api/runs/x"), Err(NoRoute::Method(READ)));
    }

    #[test]
    fn what_is_no_path_of_the_table_is_nothing() {
        for path in
            ["", "*", "/api", "/api/runs/x/y", "/assets", "/index.html", "//", "/api/runs/x/"]
        {
            assert_eq!(get(path), Err(NoRoute::Path), "{path}");
        }
        for broken in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(get(&format!("/api/runs/{broken}")), Err(NoRoute::Path), "{broken}");
        }
    }
}
