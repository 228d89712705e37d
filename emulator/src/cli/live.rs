//! The live page of a command; without the feature `figures` there is none.

#[cfg(feature = "figures")]
mod with {
    use std::path::Path;
    use std::sync::Arc;

    use clap::Args;
    use volary_experiment::config::Experiment;
    use volary_experiment::control::StudyObserver;
    use volary_experiment::storage;
    use volary_experiment::storage::manifest::RunState;
    use volary_report::dashboard::snapshot::PageHeader;
    use volary_report::dashboard::{Dashboard, Server, SnapshotSource};

    use crate::cli::output::print_note;
    use crate::runtime::{self, RunOptions};

    /// The live page of `volary run`.
    #[derive(Debug, Args)]
    pub(crate) struct LiveArgs {
        /// Show the run while it goes on, on a page for browsers of this machine; the address is printed on stderr.
        /// Without a port, any free port is taken.
        #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", value_parser = port)]
        live: Option<u16>,
    }

    impl LiveArgs {
        /// Serves the page, if requested.
        pub(crate) fn open(
            &self,
            experiment: &Experiment,
            options: &RunOptions,
        ) -> anyhow::Result<Option<LivePage>> {
            let Some(port) = self.live else { return Ok(None) };
            let dashboard = Arc::new(dashboard(experiment, options));
            let server = serve("--live", port, dashboard.clone())?;
            Ok(Some(LivePage { dashboard, server }))
        }
    }

    /// The page of a run in progress.
    #[derive(Debug)]
    pub(crate) struct LivePage {
        dashboard: Arc<Dashboard>,
        server: Server,
    }

    impl LivePage {
        pub(crate) fn observer(&self) -> Arc<dyn StudyObserver> {
            self.dashboard.clone()
        }

        /// Ends the page, and prints the command that shows the study again.
        pub(crate) fn end(self, state: RunState, out: &Path) -> anyhow::Result<()> {
            let (report, out) = (out.join(storage::REPORT), out.display());
            let report = if report.exists() {
                format!("the report is {}, and ", report.display())
            } else {
                String::new()
            };
            self.server.end(&format!("{state}; {report}volary watch {out} shows the results again"));
            print_note(&format!("the live page has ended: `volary watch {out}` shows it again"))
        }
    }

    /// Parses the port of a live page.
    pub(crate) fn port(text: &str) -> Result<u16, String> {
        let wrong =
            || format!("`{text}` is not a port: give a number up to 65535, or none to take any free port");
        text.parse().map_err(|_| wrong())
    }

    /// Serves a live page and prints its address on stderr. `flag` is the option that named the port.
    pub(crate) fn serve(flag: &str, port: u16, source: Arc<dyn SnapshotSource>) -> anyhow::Result<Server> {
        let server = Server::start(port, source).map_err(|error| anyhow::anyhow!("{flag}: {error}"))?;
        print_note(&format!("live: {}", server.url()))?;
        Ok(server)
    }

    /// The live page before the first run.
    fn dashboard(experiment: &Experiment, options: &RunOptions) -> Dashboard {
        let header = PageHeader {
            experiment: experiment.name.clone(),
            title: experiment.title.clone(),
            runtime: experiment.run.runtime.to_string(),
            policies: experiment.labels().into_iter().map(str::to_owned).collect(),
            folder: options.out.display().to_string(),
        };
        Dashboard::new(header, &runtime::expected(experiment, &experiment.runs(options.slice)))
    }
}

#[cfg(not(feature = "figures"))]
mod without {
    use std::path::Path;
    use std::sync::Arc;

    use clap::Args;
    use volary_experiment::config::Experiment;
    use volary_experiment::control::StudyObserver;
    use volary_experiment::storage::manifest::RunState;

    use crate::runtime::RunOptions;

    /// The options without the feature: there are none.
    #[derive(Debug, Args)]
    pub(crate) struct LiveArgs {}

    impl LiveArgs {
        pub(crate) const fn open(&self, _: &Experiment, _: &RunOptions) -> anyhow::Result<Option<LivePage>> {
            Ok(None)
        }
    }

    /// The page without the feature; it is never constructed.
    #[derive(Debug)]
    pub(crate) enum LivePage {}

    impl LivePage {
        pub(crate) fn observer(&self) -> Arc<dyn StudyObserver> {
            match *self {}
        }

        pub(crate) fn end(self, _: RunState, _: &Path) -> anyhow::Result<()> {
            match self {}
        }
    }
}

#[cfg(feature = "figures")]
pub(super) use with::{LiveArgs, LivePage, port, serve};
#[cfg(not(feature = "figures"))]
pub(super) use without::{LiveArgs, LivePage};
