/** Pools: hosts that are kept on one image; others import from here. */

export { askNobody, type ResolveAnswer, type ResolveImage, resolveWith } from '../images/index.ts';
export { approve } from './approval.ts';
export { draftPlan, needsLookup } from './draft.ts';
export { explainPool, withPool } from './explain.ts';
export { compareEntries } from './history.ts';
export { digestOf, imageProblem, pinProblem } from './image-name.ts';
export { readLedger } from './ledger.ts';
export { foldsOf, type LedgerEntry, type LedgerFold } from './ledger-folding.ts';
export { type LookedPool, Pools, type PoolsDependencies } from './loop.ts';
export { membersMax } from './members.ts';
export { poolKey } from './names.ts';
export { type PoolSnapshot, readSnapshot, readSnapshots } from './snapshot.ts';
export { contestedOf } from './step.ts';
export { rolloutPlan, shownHistory, shownHosts, shownPool, type Viewed } from './view.ts';
export { windowProblems } from './windows.ts';
