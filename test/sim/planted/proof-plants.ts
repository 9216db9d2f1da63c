/** Defects of reading disks again after a power cycle. */
import type { Plant } from './plant.ts';

const forgetful = { kind: 'simulation', forgetfulDisk: true } as const;
const powerCycle = 'controlplane/src/host/erasure/power-cycle.ts';
const proofSteps = 'controlplane/src/host/run/proof-steps.ts';
const notDue = 'if (!isRereadingDue(pass)) return [...steps];';
const neverDue = 'if (pass.record.unproved.length < 1e9) return [...steps];';

export const proofPlants: readonly Plant[] = [
  {
    name: 'rereadSkipped',
    breaks: 'E3: what was erased is read again before anything is written or used',
    file: proofSteps,
    find: notDue,
    replace: neverDue,
    caughtBy: { ...forgetful, rule: 'E3' },
  },
  {
    name: 'rereadIgnored',
    breaks: 'E2: where data has come back, a fault stands and the certificate is revoked',
    file: powerCycle,
    find: "if (reading === 'nothing') return;",
    replace: 'if (type >= 0) return;',
    caughtBy: { ...forgetful, rule: 'E2' },
  },
  {
    name: 'revocationLost',
    breaks: 'E2: the certificate of a disk whose content came back is revoked',
    file: powerCycle,
    find: 'const documents = revocations(pass, evidence);',
    replace: 'const documents = revocations(pass, evidence).slice(1e9);',
    caughtBy: { ...forgetful, rule: 'E2' },
  },
  {
    name: 'addendumOfReturnedData',
    breaks: 'E1: an addendum says that a disk was read clean after a power cycle',
    file: 'controlplane/src/host/erasure/proof-documents.ts',
    find: 'return [draft(pass, unproved, ErasureDocumentKind.REVOCATION, statement)];',
    replace: 'return [draft(pass, unproved, ErasureDocumentKind.ADDENDUM, statement)];',
    caughtBy: { ...forgetful, rule: 'E1' },
  },
  {
    name: 'returnedDataStaysAvailable',
    breaks: 'E2: a host whose data came back is not available',
    file: powerCycle,
    find: "if (status.state === HostState.AVAILABLE || !status.dirty) move(status, 'unproved');",
    replace: '',
    // The simulation meets it in one of some hundred seeds.
    caughtBy: {
      kind: 'test',
      file: 'controlplane/src/host/erasure/power-cycle.test.ts',
      name: 'stops a deployment before it writes, and takes the host out of available',
    },
  },
  {
    name: 'imageOntoReturnedData',
    breaks: 'E4: no image comes onto a machine with a disk whose data came back',
    file: proofSteps,
    find: notDue,
    replace: neverDue,
    // The same defect is found by the simulation above, by another rule.
    caughtBy: {
      kind: 'test',
      file: 'controlplane/src/host/erasure/power-cycle.test.ts',
      name: 'reads again before an image is written',
    },
  },
  {
    name: 'atOnceIsNextBoot',
    breaks: 'E5: a clean that reads again at once ends in available only when it has',
    file: powerCycle,
    find: 'case PowerCycleCheck.IMMEDIATE:\n      return true;',
    replace: 'case PowerCycleCheck.IMMEDIATE:\n      return false;',
    caughtBy: { ...forgetful, rule: 'E5' },
  },
];
