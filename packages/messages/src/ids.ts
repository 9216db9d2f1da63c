/**
 * What kind of thing an id names. Nothing of an opaque text can be checked. So an id has its kind
 * from where it was decoded or made, and the compiler refuses it where another kind is meant; a
 * plain text is still taken. Generated messages have these types, too (`test/tidy/ids.ts`). A text
 * whose form is checked is branded instead (`Mac`, `Digest`).
 */

/** A host for ever: one that is created again under the same name has another. */
export type HostUid = string & { readonly __kind?: 'HostUid' };

/** "<host uid>/<run>/<step>/<attempt>": one attempt; beneath it the agent's own, as of a cancel. */
export type OperationId = string & { readonly __kind?: 'OperationId' };
