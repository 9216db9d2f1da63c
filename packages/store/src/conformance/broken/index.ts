/** Seven ways to be wrong that the suite must see (DESIGN §11: a check must be able to fail). */
import { agedOut } from './aged-out.ts';
import { earlyAcknowledgement } from './early-acknowledgement.ts';
import { lostEvent } from './lost-event.ts';
import { restoredInPlace } from './restored-in-place.ts';
import { revisionReset } from './revision-reset.ts';
import { staleGet } from './stale-get.ts';
import { twoWinners } from './two-winners.ts';
import type { BrokenStore } from './wrap.ts';

export const brokenStores: readonly BrokenStore[] = [
  twoWinners,
  staleGet,
  lostEvent,
  revisionReset,
  earlyAcknowledgement,
  agedOut,
  restoredInPlace,
];
