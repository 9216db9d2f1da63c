/** Defects of reading disks again after a power cycle. */
import type { Plant } from './plant.ts';

const bySimulation = { kind: 'simulation' } as const;
const powerCycle = 'controlplane/src/host/erasure/power-cycle.ts';

export const proofPlants: readonly Plant[] = [
  {
    name: 'rereadSkipped',
    breaks: 'E3: what was erased is read again before anything is written or used',
    file: 'controlplane/src/host/run/proof-steps.ts',
    find: 'if (!isDue(turn)) return [...steps];',
    replace: 'if (turn.record.unproved.length < 1e9) return [...steps];',
    caughtBy: { ...bySimulation, forgetfulDisk: true },
  },
  {
    name: 'rereadIgnored',
    breaks: 'E2: where data has come back, a fault stands and the certificate is revoked',
    file: powerCycle,
    find: 'if (saysNothing.has(type)) return;',
    replace: 'if (type >= 0) return;',
    caughtBy: { ...bySimulation, forgetfulDisk: true },
  },
  {
    name: 'revocationLost',
    breaks: 'E2: the certificate of a disk whose content came back is revoked',
    file: powerCycle,
    find: 'const documents = revocations(turn, evidence);',
    replace: 'const documents = revocations(turn, evidence).slice(1e9);',
    caughtBy: { ...bySimulation, forgetfulDisk: true },
  },
];
