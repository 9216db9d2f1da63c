/** Fifteen ways to be wrong that the suite must see (DESIGN §11: a check must be able to fail). */

import { agedOut } from './aged-out.ts';
import { agelessLog } from './ageless-log.ts';
import { earlyAcknowledgement } from './early-acknowledgement.ts';
import { forgetfulLog } from './forgetful-log.ts';
import { lateIndex } from './late-index.ts';
import { lostEvent } from './lost-event.ts';
import { pageGap } from './page-gap.ts';
import { repeatedKey } from './repeated-key.ts';
import { restoredInPlace } from './restored-in-place.ts';
import { revisionReset } from './revision-reset.ts';
import { shortPast } from './short-past.ts';
import { skippedKey } from './skipped-key.ts';
import { staleGet } from './stale-get.ts';
import { stalePage } from './stale-page.ts';
import { twoWinners } from './two-winners.ts';
import type { BrokenStore } from './wrap.ts';

export const brokenStores: readonly BrokenStore[] = [
  twoWinners,
  skippedKey,
  repeatedKey,
  pageGap,
  stalePage,
  lateIndex,
  staleGet,
  lostEvent,
  revisionReset,
  earlyAcknowledgement,
  agedOut,
  restoredInPlace,
  shortPast,
  agelessLog,
  forgetfulLog,
];
