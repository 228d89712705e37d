//! Amounts of CPU and memory.

/// CPU and memory that a node has or a task needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
}

impl Amount {
    /// One core, and no memory.
    pub const CORE: Self = Self { cpu: 1000, memory: 0 };

    /// The number of tasks that fit at once, each with the needs of `task`; a need of zero is no limit.
    pub fn holds(&self, task: Self) -> u32 {
        let fit = |has: u64, needs: u64| has.checked_div(needs).unwrap_or(u64::MAX);
        fit(self.cpu, task.cpu).min(fit(self.memory, task.memory)).min(u64::from(u32::MAX)) as u32
    }

    /// The shares of this CPU and memory that a task takes. If only one of the two is limited, both shares are equal.
    pub(crate) fn shares(&self, task: Self) -> [f64; 2] {
        let part = |has: u64, needs: u64| (has > 0).then(|| needs as f64 / has as f64);
        let (cpu, memory) = (part(self.cpu, task.cpu), part(self.memory, task.memory));
        [cpu.or(memory), memory.or(cpu)].map(|share| share.unwrap_or(0.0))
    }
}
