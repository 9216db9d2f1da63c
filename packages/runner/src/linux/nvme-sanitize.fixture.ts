/** The sanitize log as releases of nvme-cli print it in JSON. */

const meanings: Readonly<Record<number, string>> = {
  0: 'NVM Subsystem has never been sanitized.',
  1: 'Most Recent Sanitize Command Completed Successfully.',
  2: 'Sanitize in Progress.',
  3: 'Most Recent Sanitize Command Failed.',
  4: 'Most Recent Sanitize Command (No-Deallocate After Sanitize) Completed Successfully.',
};

/** `named`: what the release calls the state, "status" or its meaning. Half of it is done. */
export function sanitizeLog(named: 'status' | 'meaning', state: number): object {
  const meaning = meanings[state] ?? 'Unknown';
  const sstat = {
    ...{ global_erased: 1, no_cmplted_passes: 0 },
    [named === 'status' ? 'status' : meaning]: `(${state}) ${meaning}`,
  };
  const times = { time_over_write: 4_294_967_295, time_block_erase: 60, time_crypto_erase: 5 };
  return { nvme0n1: { sprog: 32_768, sstat, cdw10_info: 4, ...times } };
}
