/** Pools: hosts that are kept on one image; others import from here. */

export { askNobody, type ResolveImage, type ResolveResult, resolveWith } from '../images/index.ts';
export { approve } from './decide/approval.ts';
export { contestedOf } from './decide/decide.ts';
export { membersMax } from './facts/members.ts';
export { compareEntries } from './ledger/history.ts';
export { readLedger } from './ledger/ledger.ts';
export { foldsOf, type LedgerEntry, type LedgerFold } from './ledger/ledger-folding.ts';
export { digestInImage, imageProblem, pinProblem } from './policy/image-name.ts';
export { poolKey, poolUidOf } from './policy/names.ts';
export { windowProblems } from './policy/windows.ts';
export { Pools, type PoolsDependencies, type ReconciledPool } from './shell/loop.ts';
export {
  type PoolSnapshot,
  readSnapshot,
  readSnapshots,
  type SnapshotOf,
} from './shell/snapshot.ts';
export { draftPoolPlan, needsLookup } from './show/draft.ts';
export { explainPool, withPool } from './show/explain.ts';
export {
  type PoolViewInputs,
  rolloutPlan,
  shownHistory,
  shownHosts,
  shownPool,
} from './show/view.ts';
