/** The agent's journal (DESIGN R4, R9). */
export { Journal, type JournalOptions } from './journal.ts';
export {
  applyRecord,
  emptyJournal,
  type JournalledGrant,
  type JournalledOperation,
  type JournalState,
  makeRecord,
  type RecordInit,
  recordsOf,
} from './state.ts';
