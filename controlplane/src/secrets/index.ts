/** Secrets at rest: how they are sealed, the source of their key, and its rotation. */

export { boundsProblem, type GivenFor, OutOfBounds } from './bounds.ts';
export { countByKey } from './census.ts';
export {
  type CredentialOpener,
  credentialRecord,
  namedFor,
  noteGiven,
  openNamed,
  openRecord,
  secretsForCalls,
  whyNotGiven,
} from './hand-out.ts';
export { SecretsKeeper } from './keeper.ts';
export {
  type KeySource,
  type KeySourceConfig,
  type KeySourceParts,
  openKeySource,
  ownerOnlyFile,
  shownConfig,
} from './key-source.ts';
export { formatKey, parseKeys } from './key-text.ts';
export { liesWithin, networkProblem } from './networks.ts';
export { keyBytes as secretsKeyBytes } from './seal.ts';
export { createSecrets, SecretError, type Secrets, secretsKeyId } from './secrets.ts';
