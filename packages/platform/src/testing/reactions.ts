/** Lets what has been started run on, for a number of steps and no time of a clock. */

/** Until so many microtasks have run, one after the other: reactions of promises. */
export async function afterMicrotasks(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await Promise.resolve();
}

/** Until the event loop has come round so many times: also input and output that is ready. */
export async function afterImmediates(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
