/**
 * The value that was read from a text, or the problem of the text. Every parser of the whole tree
 * answers with this type.
 */
export type Read<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'bad'; readonly problem: string };

export function valid<T>(of: T): Read<T> {
  return { kind: 'value', value: of };
}

export function invalid(problem: string): Extract<Read<never>, { kind: 'bad' }> {
  return { kind: 'bad', problem };
}

/** The problem alone, for a check that does not use the value. */
export function problemIn(read: Read<unknown>): string | undefined {
  return read.kind === 'bad' ? read.problem : undefined;
}
