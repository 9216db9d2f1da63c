/** The version that the runner states in its Hello and in evidence. */
export const runnerVersion = '0.1.0';
