//! The assignment of jobs to clients.

use volary_actors::base::JobId;

/// The jobs of each client in order of arrival, one client after another: 4 bytes a job and a client.
#[derive(Debug)]
pub(super) struct Homes {
    /// Index of each client's first job, and the total at the end.
    first: Vec<u32>,
    jobs: Vec<JobId>,
}

impl Homes {
    /// Sorts `jobs` jobs by the client, below `clients`, that `home` returns. Linear in both numbers.
    pub(super) fn new(clients: u32, jobs: u32, home: impl Fn(JobId) -> u32) -> Self {
        let mut first = vec![0; clients as usize + 1];
        for job in (0..jobs).map(JobId) {
            first[home(job) as usize + 1] += 1;
        }
        for client in 0..clients as usize {
            first[client + 1] += first[client];
        }
        let mut next = first.clone();
        let mut sorted = vec![JobId(0); jobs as usize];
        for job in (0..jobs).map(JobId) {
            let place = &mut next[home(job) as usize];
            sorted[*place as usize] = job;
            *place += 1;
        }
        Self { first, jobs: sorted }
    }

    /// The first job with a number of at least `from` that arrives at a client.
    pub(super) fn next(&self, client: u32, from: u32) -> Option<JobId> {
        let client = client as usize;
        let own = &self.jobs[self.first[client] as usize..self.first[client + 1] as usize];
        own.get(own.partition_point(|job| job.0 < from)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_finds_its_own_jobs_in_order() {
        let home = |job: JobId| [3, 0, 3, 1][job.0 as usize % 4];
        let homes = Homes::new(4, 10, home);
        for client in 0..4 {
            let mut found = Vec::new();
            while let Some(job) = homes.next(client, found.last().map_or(0, |last: &JobId| last.0 + 1)) {
                found.push(job);
            }
            let own: Vec<_> = (0..10).map(JobId).filter(|&job| home(job) == client).collect();
            assert_eq!(found, own);
        }
        assert_eq!((homes.next(3, 1), homes.next(2, 0), homes.next(0, 10)), (Some(JobId(2)), None, None));
    }
}
