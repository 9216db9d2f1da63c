/** How deeply YAML is nested, measured without recursion before anything recursive reads it. */
import type { CST } from 'yaml';

/** The position of the first map or list that is nested deeper than `depthMax`. */
export function firstTooDeep(tokens: readonly CST.Token[], depthMax: number): number | undefined {
  const ahead = tokens.flatMap((token) =>
    token.type === 'document' && token.value ? [{ token: token.value, depth: 1 }] : [],
  );
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { token, depth } = next;
    if (!('items' in token)) continue;
    if (depth > depthMax) return token.offset;
    for (const item of token.items) {
      const { key, value } = item as { key?: CST.Token | null; value?: CST.Token };
      for (const inner of [key, value]) if (inner) ahead.push({ token: inner, depth: depth + 1 });
    }
  }
  return undefined;
}
