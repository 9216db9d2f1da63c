/**
 * Promises whose errors belong elsewhere. The name of each function gives the reason; a bare
 * `.catch(() => {})` gives none.
 */

/**
 * Marks the rejection of a promise as handled, as a later `await` gets the error. Without one the
 * outcome does not matter: the promise has lost a race, or its purpose is over.
 */
export function markHandled(promise: Promise<unknown>): void {
  // Every other handler of the promise still gets the error.
  promise.catch(() => undefined);
}

/**
 * Resolves when the promise has settled either way; never rejects. The next work then does not
 * depend on its outcome. The owner of the promise itself gets the error.
 */
export function whenSettled(promise: Promise<unknown>): Promise<void> {
  const nothing = (): void => undefined;
  return promise.then(nothing, nothing);
}

/**
 * Closes an iterator that has no reader any more, and does not wait: a generator that is waiting
 * closes only later. An error while it closes belongs to a call that is over.
 */
export function abandon(iterator: AsyncIterator<unknown>): void {
  // The call is over.
  iterator.return?.().catch(() => undefined);
}
