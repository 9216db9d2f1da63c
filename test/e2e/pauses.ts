/** The engine's pauses in tests that run in real time. */
export const shortPauses = {
  retryDelayMs: 200,
  retryDelayMaxMs: 1_000,
  goalDelayMs: 500,
  rereadDelayMs: 300,
} as const;
