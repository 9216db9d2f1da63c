/**
 * Typical contents of stored records, as a compression dictionary for the store: a host during a
 * clean, the results of a run, a certificate and a manifest. It may change at any time; a store
 * keeps each dictionary that it got.
 *
 * Must not: contain data of a real host.
 */
import { fromJson, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';

const uid = '3f9a51c07be24d868e1290a4c7d35b6f';
const diskId = { serial: `${uid}-A`, sizeBytes: '1048576' };
const disk = {
  device: 'sda',
  transport: 'TRANSPORT_SATA',
  ...diskId,
  discardSupported: true,
  regions: [{ name: 'sda', sizeBytes: '1048576', logicalBlockBytes: 512 }],
};
const plan = {
  device: disk,
  method: 'ERASURE_METHOD_DISCARD',
  verification: { level: 'VERIFICATION_LEVEL_FULL' },
  rereadDelay: '10s',
};
const identity = { guid: 'zAX0ZCOx7X2N7E7binmnhA==', serial: uid };
const time = '2026-01-02T03:04:05.678Z';
const bmc = { address: '10.1.2.3', credential: 'credentials/bmc' };

function step(name: string, state: string, more: object = {}): object {
  const times = { startTime: time, endTime: time, deadline: time };
  const usual = { rerunClass: 'RERUN_CLASS_SAFE', abortable: true };
  return { name, state: `STEP_STATE_${state}`, attempt: 1, ...usual, ...times, ...more };
}

const steps = [
  step('bmc.verifyAccess', 'SUCCEEDED'),
  step('power.off', 'SUCCEEDED'),
  step('power.bootRunner', 'SUCCEEDED'),
  step('runner.await', 'SUCCEEDED'),
  step('runner.inspect', 'SUCCEEDED'),
  step('deploy.erase_devices', 'RUNNING', { destructive: true }),
  ...['runner.inspectAgain', 'power.off'].map((name) => step(name, 'PENDING', { attempt: 0 })),
];

const operation = {
  id: `${uid}/3/4/1`,
  hostUid: uid,
  hostName: 'hosts/h1',
  deadline: time,
  runStep: {
    step: 'deploy.erase_devices',
    mode: 'STEP_MODE_RUN',
    destructive: true,
    rerunClass: 'RERUN_CLASS_SAFE',
    bootOperationId: `${uid}/3/1/1`,
    devices: [plan],
    challengeSeed: '',
    expectedIdentity: identity,
    allowUnprovenIdentity: false,
    allowDiskless: false,
    runnerSession: `${uid}/3/1/1`,
  },
};
const power = {
  bmc: { ...bmc, credentialVersion: '7', protocol: 'redfish' },
  on: true,
  bootFrom: 'BOOT_TARGET_RUNNER',
  expectedIdentity: identity,
  bootMacs: ['52:54:00:00:00:01'],
  grantExpireTime: time,
};

const boot = { bootOperationId: `${uid}/3/1/1`, bootId: `${uid}/3/1/1` };
const certificate = `erasureCertificates/${uid}-3-4-1-1-e29fc73b`;
const run = {
  kind: 'RUN_KIND_CLEAN',
  number: '3',
  phase: 'RUN_PHASE_RUNNING',
  steps,
  currentStep: 4,
  startTime: time,
  deadline: time,
  requestedBy: 'goal',
};
const settled = ['3/0/1', '3/1/1', '3/3/1', '3/4/1'];

const host = {
  host: {
    name: 'hosts/h1',
    uid,
    createTime: time,
    updateTime: time,
    spec: { rack: 'racks/r1', bmc, bootMacs: ['52:54:00:00:00:01'] },
    status: {
      state: 'HOST_STATE_MANAGEABLE',
      dirty: true,
      run,
      lastCleaned: { at: time, level: 'ERASURE_LEVEL_FULL', certificates: [certificate] },
      useEpoch: '1',
      bmcIdentity: identity,
      poweredOn: true,
    },
  },
  change: {
    actor: 'agent',
    cause: 'power.off attempt 1: complete; clean 3 succeeded; inspect 2 started towards the goal',
    operationId: `${uid}/3/3/1`,
    time,
  },
  operation: {
    operation,
    createTime: time,
    sentTo: { id: uid, generation: '1', life: '9630463944700403105' },
    sendTime: time,
  },
  runCount: '3',
  runner: { hostUid: uid, runnerSession: `${uid}/3/1/1`, ...boot },
  devicePlan: [plan],
  certified: [{ deviceKey: `${uid}-A`, certificate, useEpoch: '1', runnerSession: `${uid}/3/1/1` }],
  verifiedBmc: bmc,
  settledReports: settled.map((at) => ({
    operationId: `${uid}/${at}`,
    result: 'REPORT_RESULT_COMPLETE',
    answer: 'SETTLED_ANSWER_APPLIED',
  })),
  inRunner: true,
};

const facts = {
  hostUid: uid,
  inventory: {
    system: { uuid: identity.guid, serial: uid },
    devices: [disk],
    runnerSession: `${uid}/3/1/1`,
    bootId: `${uid}/3/1/1`,
  },
};

/** As `formatStatement` writes it, without the variable parts. */
const statement = `{
  "format": "rackwright-erasure-certificate-2",
  "host": {
    "name": "hosts/h1",
    "uid": "${uid}",
    "manufacturer": "",
    "product": "",
    "serial": "",
    "chassisSerial": "",
    "boardSerial": "",
    "assetTag": ""
  },
  "report": {
    "organisation": "",
    "customer": "",
    "technician": ""
  },
  "device": {
    "name": "sda",
    "transport": "sata",
    "manufacturer": "",
    "mediaType": null,
    "model": "",
    "serial": "",
    "wwn": "",
    "firmware": "",
    "sizeBytes": 1048576,
    "certifiedAs": "disk"
  },
  "capacity": {
    "kind": "notExamined",
    "reason": "the device was not asked"
  },
  "method": "discard",
  "methodTitle": "discard of all blocks (TRIM, UNMAP, deallocate)",
  "methodProvenOnDevice": true,
  "level": "clear",
  "standard": "NIST SP 800-88 Rev. 2; IEEE 2883-2022",
  "verification": {
    "level": "full",
    "places": 0,
    "shareReadPpcm": 100000000,
    "findsSharePpcm": 0,
    "confidenceBp": 10000
  },
  "verdict": {
    "kind": "erased",
    "level": "full",
    "placesRead": 256,
    "bytesRead": 1048576,
    "bytesExamined": 1048576
  },
  "powerCycle": "notYetVerified",
  "ofFailedStep": false,
  "loss": null,
  "disposition": "remainsInHost",
  "rounds": 1,
  "verifyPasses": 1,
  "bytesWritten": 0,
  "hiddenBytesRemoved": 0,
  "methodMs": 0,
  "verifyMs": 0,
  "writeSpeed": null,
  "readSpeed": null,
  "errors": [],
  "healthBefore": null,
  "healthAfter": null,
  "notExamined": [],
  "dismantled": [],
  "mode": "run",
  "identity": {
    "kind": "proven",
    "witnesses": [
      "uuid"
    ]
  },
  "deviceLog": [],
  "startedAt": "2026-01-02T03:04:05.678Z",
  "endedAt": "2026-01-02T03:04:05.678Z",
  "tools": {
    "runner": ""
  },
  "software": {
    "version": "",
    "buildSha256": null
  },
  "orderedBy": "goal",
  "verifiedBy": {
    "agentKeySha256": "",
    "runnerVersion": ""
  },
  "challengeSeed": "",
  "challengeBlocksWritten": 64,
  "useEpoch": 1,
  "runnerSession": "",
  "bootId": "",
  "operationId": "",
  "evidence": "sha256:",
  "evidenceSignature": "MEUCIQ",
  "agentPublicKey": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE",
  "storeIncarnation": "",
  "previousSha256": null
}
`;

const manifest = `{
  "format": "rackwright-erasure-manifest-1",
  "createdAt": "",
  "complete": true,
  "devices": [
    {
      "sources": [
        "kernel"
      ],
      "kind": "blockDevice",
      "name": "sda",
      "model": "",
      "serial": "",
      "wwn": "",
      "sizeBytes": 1048576,
      "decision": {
        "kind": "erased",
        "certificate": "erasureCertificates/",
        "certificateSha256": ""
      }
    }
  ],
  "previousSha256": null
}
`;

/** The most frequent last. */
export function usualBytes(): Uint8Array {
  const schema = wire.HostRecordSchema;
  const { runStep: _, ...order } = operation;
  const switching = { ...host.operation, operation: { ...order, setPower: power } };
  const booting = { ...host, operation: switching };
  return Buffer.concat([
    Buffer.from(manifest),
    Buffer.from(statement),
    toBinary(wire.HostFactsSchema, fromJson(wire.HostFactsSchema, facts)),
    toBinary(schema, fromJson(schema, host as never)),
    toBinary(schema, fromJson(schema, booting as never)),
  ]);
}
