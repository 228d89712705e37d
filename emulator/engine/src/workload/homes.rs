//! The assignment of chains of jobs to clients.

/// The chains of each client in order of arrival, one client after another: 4 bytes a chain and a client.
#[derive(Debug)]
pub(super) struct Homes {
    /// Index of each client's first chain, and the total at the end.
    first: Vec<u32>,
    chains: Vec<u32>,
}

impl Homes {
    /// Sorts `chains` chains by the client, below `clients`, that `home` returns. Linear in both numbers.
    pub(super) fn new(clients: u32, chains: u32, home: impl Fn(u32) -> u32) -> Self {
        let mut first = vec![0; clients as usize + 1];
        for chain in 0..chains {
            first[home(chain) as usize + 1] += 1;
        }
        for client in 0..clients as usize {
            first[client + 1] += first[client];
        }
        let mut next = first.clone();
        let mut sorted = vec![0; chains as usize];
        for chain in 0..chains {
            let place = &mut next[home(chain) as usize];
            sorted[*place as usize] = chain;
            *place += 1;
        }
        Self { first, chains: sorted }
    }

    /// The first chain with a number of at least `from` that arrives at a client.
    pub(super) fn next(&self, client: u32, from: u32) -> Option<u32> {
        let client = client as usize;
        let own = &self.chains[self.first[client] as usize..self.first[client + 1] as usize];
        own.get(own.partition_point(|&chain| chain < from)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_finds_its_own_chains_in_order() {
        let home = |chain: u32| [3, 0, 3, 1][chain as usize % 4];
        let homes = Homes::new(4, 10, home);
        for client in 0..4 {
            let mut found = Vec::new();
            while let Some(chain) = homes.next(client, found.last().map_or(0, |last: &u32| last + 1)) {
                found.push(chain);
            }
            let own: Vec<_> = (0..10).filter(|&chain| home(chain) == client).collect();
            assert_eq!(found, own);
        }
        assert_eq!((homes.next(3, 1), homes.next(2, 0), homes.next(0, 10)), (Some(2), None, None));
    }
}
