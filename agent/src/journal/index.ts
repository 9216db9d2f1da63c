/** The agent's journal (DESIGN R4, R9). */
export { Journal, type JournalOptions } from './journal.ts';
export {
  type JournalledGrant,
  type JournalledOperation,
  type JournalState,
  type RecordInit,
  storeSeen,
} from './state.ts';
