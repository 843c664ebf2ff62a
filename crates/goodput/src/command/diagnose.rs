//! `diagnose`: what limits a run and what to change, from its directory.

use report::lang::Lang;

use crate::command::report::{definition, figures, read};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::plan::objective;

/// What `diagnose` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) run: &'a str,
    pub(crate) runs_dir: Option<&'a str>,
    pub(crate) json: Option<&'a str>,
    pub(crate) goodput: Vec<&'a str>,
    pub(crate) slo: Vec<&'a str>,
    pub(crate) lang: Lang,
}

pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let slo = objective::parse(arguments.goodput.iter().copied(), arguments.slo.iter().copied())?;
    let json = output::Json::open(arguments.json)?;
    let mut run = read(arguments.run, arguments.runs_dir)?;
    run.judge_by(slo.as_ref())?;
    let definition = definition("goodput", &run.facts)?;
    let summary = figures(&run, &definition);
    for note in &run.notes {
        crate::say(note);
    }
    let page = report::content::diagnosis(&summary, arguments.lang);
    json.show(output::text(&page, json.is_stdout()).trim_end());
    json.write(&wire::summary::diagnosis(&summary))?;
    Ok(Exit::Ok)
}
