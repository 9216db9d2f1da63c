/** One call for everyone who asks the same until immediates next run. */

/**
 * Shares a call between those who ask for the same key until immediates next run. It begins then,
 * so what it finds is never older than anyone's question.
 */
export function shareCalls<Result>(
  call: (key: string) => Promise<Result>,
): (key: string) => Promise<Result> {
  const underWay = new Map<string, Promise<Result>>();
  return (key) => {
    const known = underWay.get(key);
    if (known !== undefined) return known;
    const answer = new Promise<Result>((resolve) => {
      setImmediate(() => {
        underWay.delete(key);
        resolve(call(key));
      });
    });
    underWay.set(key, answer);
    return answer;
  };
}
