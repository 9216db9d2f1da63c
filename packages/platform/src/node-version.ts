/** Which Node the programs run on. */

/** Lowest version: HTTP/2 before it has CVE-2026-56848, and types are stripped without warning. */
const lowest = [24, 18, 1] as const;

/** The problem of the Node version `version` ("24.21.0"); undefined when it will do. */
export function nodeVersionProblem(version: string): string | undefined {
  const parts = version.split('.').map(Number);
  for (const [index, least] of lowest.entries()) {
    const part = parts[index] ?? 0;
    if (part > least) return undefined;
    if (part < least) {
      return (
        `This needs Node ${lowest.join('.')} or later, not ${version}. ` +
        'The pinned one is node_modules/.bin/node after npm ci.'
      );
    }
  }
  return undefined;
}
