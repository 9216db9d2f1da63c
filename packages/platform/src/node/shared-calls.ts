/** One call for everyone who asks the same within one iteration of the event loop. */

/**
 * Shares a call between those who ask for the same key within one iteration of the event loop. It
 * begins at the end of that iteration, so what it finds is never older than anyone's question.
 */
export function shareCalls<Result>(
  call: (key: string) => Promise<Result>,
): (key: string) => Promise<Result> {
  const asked = new Map<string, Promise<Result>>();
  return (key) => {
    const known = asked.get(key);
    if (known !== undefined) return known;
    const answer = new Promise<Result>((resolve) => {
      setImmediate(() => {
        asked.delete(key);
        resolve(call(key));
      });
    });
    asked.set(key, answer);
    return answer;
  };
}
