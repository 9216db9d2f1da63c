/**
 * Defects put in on purpose: each breaks one promise that the protocol stands on, and the judge
 * must find it. A simulation that stays green with one of them proves nothing.
 */
export const plantedFaults = [
  /** A disk passes for erased wherever it is read, and keeps its data. */
  'hidingDevice',
  /** The store loses the writes of its last second when the control plane dies. */
  'storeForgets',
] as const;

export type PlantedFault = (typeof plantedFaults)[number];
