/**
 * What each field of a message from an agent is: whether it names something that could be another
 * rack's. Every field that agents can send stands here; a test compares.
 */

/** What a field names. `free`: what names nothing of the control plane's. */
export type NameClass =
  | 'free'
  | 'hostUid'
  | 'hostName'
  | 'operationId'
  | 'mac'
  | 'bmcAddress'
  | 'bmcGuid'
  | 'serial'
  | 'machineUuid'
  | 'journalId'
  | 'sequence'
  | 'incarnation'
  | 'publicKey'
  | 'nonce'
  | 'signature'
  | 'joinToken'
  | 'evidence'
  | 'runnerSession'
  | 'findingId'
  | 'sessionId'
  | 'caSha256'
  | 'rack';

const agentPackage = 'rackwright.agent.v1';

/** By message and field; `*` is every field of the message that is not named. */
export const classes: Readonly<Record<string, Readonly<Record<string, NameClass>>>> = {
  [`${agentPackage}.IssueCertificateRequest`]: {
    public_key: 'publicKey',
    nonce: 'nonce',
    signature: 'signature',
    join_token: 'joinToken',
    rack: 'rack',
  },
  [`${agentPackage}.Hello`]: {
    agent_version: 'free',
    operation_kinds: 'free',
    incarnation: 'incarnation',
    revision: 'sequence',
    store_refused: 'free',
    store_refusal: 'free',
    lost_revisions: 'sequence',
    trusted_ca_sha256: 'caSha256',
    replaces_session_id: 'sessionId',
    bmc_reads: 'free',
    watches_consoles: 'free',
  },
  // As of BmcRead.
  [`${agentPackage}.ConsoleOutput`]: {
    id: 'free',
    host_uid: 'hostUid',
    content: 'free',
    dropped_bytes: 'free',
    state: 'free',
    failure: 'free',
    message: 'free',
  },
  // A question's id counts only from the rack that was asked, with its host.
  [`${agentPackage}.BmcRead`]: {
    id: 'free',
    host_uid: 'hostUid',
    failure: 'free',
    transient: 'free',
    message: 'free',
  },
  [`${agentPackage}.TrustApplied`]: { trusted_ca_sha256: 'caSha256' },
  [`${agentPackage}.Journal`]: {
    id: 'journalId',
    generation: 'sequence',
    life: 'sequence',
    earlier_lives: 'sequence',
  },
  [`${agentPackage}.JournalledOperation`]: {
    operation_id: 'operationId',
    host_uid: 'hostUid',
    state: 'free',
    answered: 'free',
  },
  [`${agentPackage}.OpenGrant`]: {
    operation_id: 'operationId',
    host_uid: 'hostUid',
    bound: 'free',
  },
  [`${agentPackage}.RunnerReady`]: {
    host_uid: 'hostUid',
    boot_operation_id: 'operationId',
    runner_session: 'runnerSession',
    boot_id: 'runnerSession',
    runner_version: 'free',
  },
  [`${agentPackage}.RunnerRefused`]: { boot_operation_id: 'operationId', message: 'free' },
  [`${agentPackage}.StepDescription`]: {
    name: 'free',
    priority: 'free',
    rerun_class: 'free',
    destructive: 'free',
    abortable: 'free',
    description: 'free',
    arguments: 'free',
    reboot_after: 'free',
  },
  [`${agentPackage}.Heartbeat`]: { sequence: 'sequence', next_in_ms: 'free' },
  [`${agentPackage}.SnapshotApplied`]: { generation: 'sequence' },
  [`${agentPackage}.HostForgotten`]: { host_uid: 'hostUid' },
  [`${agentPackage}.PowerDigest`]: { generation: 'sequence' },
  [`${agentPackage}.HostPowerState`]: { host_uid: 'hostUid', powered_on: 'free' },
  [`${agentPackage}.StepLog`]: {
    operation_id: 'operationId',
    host_uid: 'hostUid',
    offset: 'sequence',
    content: 'free',
  },
  [`${agentPackage}.Discovered`]: {
    id: 'findingId',
    boot_mac: 'mac',
    bmc_address: 'bmcAddress',
  },
  [`${agentPackage}.Report`]: {
    sequence: 'sequence',
    operation_id: 'operationId',
    host_uid: 'hostUid',
  },
  [`${agentPackage}.StepOutput`]: { tail: 'free' },
  [`${agentPackage}.Continuing`]: {
    step: 'free',
    percent: 'free',
    text: 'free',
    begun: 'free',
    queue_place: 'free',
  },
  [`${agentPackage}.HostSign`]: { kind: 'free', detail: 'free' },
  [`${agentPackage}.RetryAfter`]: { reason: 'free', message: 'free' },
  [`${agentPackage}.Failed`]: {
    type: 'free',
    message: 'free',
    detail: 'free',
    last_progress: 'free',
    disks_untouched: 'free',
  },
  [`${agentPackage}.TransientError`]: { cause: 'free', message: 'free', disks_untouched: 'free' },
  // Disks are told apart within their host only, images within the rack's own list.
  [`${agentPackage}.WrittenImage`]: { '*': 'free' },
  [`${agentPackage}.WrittenPartition`]: { '*': 'free' },
  [`${agentPackage}.ImagePrefetched`]: { '*': 'free' },
  [`${agentPackage}.Observations`]: { powered_on: 'free', shutdown: 'free' },
  [`${agentPackage}.BmcHealth`]: { reachable: 'free', trouble: 'free', message: 'free' },
  [`${agentPackage}.UnexpectedNetboot`]: {
    mac: 'mac',
    host_uid: 'hostUid',
    host_name: 'hostName',
    instead_of_operation_id: 'operationId',
    seen_in_band: 'free',
  },
  [`${agentPackage}.NetworkFault`]: {
    type: 'free',
    mac: 'mac',
    address: 'free',
    host_uid: 'hostUid',
  },
  [`${agentPackage}.Evidence`]: {
    payload: 'evidence',
    signature: 'signature',
    public_key: 'publicKey',
  },
  'rackwright.v1.BmcIdentity': { guid: 'bmcGuid', serial: 'serial', '*': 'free' },
  'rackwright.v1.SystemIdentity': {
    uuid: 'machineUuid',
    bmc_guid: 'bmcGuid',
    serial: 'serial',
    '*': 'free',
  },
  'rackwright.v1.Inventory': {
    runner_session: 'runnerSession',
    boot_id: 'runnerSession',
    '*': 'free',
  },
  'rackwright.v1.NetworkInterface': { mac: 'mac', '*': 'free' },
  // What a machine is made of: devices are told apart within their host only.
  'rackwright.v1.ShownCertificate': { sha256: 'free' },
  'rackwright.v1.OtherHost': { name: 'hostName' },
  'rackwright.v1.DiskElsewhere': { device: 'serial', host: 'hostName' },
  'rackwright.v1.DisabledStep': { '*': 'free' },
  'rackwright.v1.BootStalled': { '*': 'free' },
  'rackwright.v1.BootTrace': {
    operation_id: 'operationId',
    mac: 'mac',
    gives_addresses: 'free',
    last_screen: 'free',
    missing: 'free',
  },
  'rackwright.v1.BootStep': { '*': 'free' },
  'rackwright.v1.Cpu': { '*': 'free' },
  'rackwright.v1.StorageDevice': { '*': 'free' },
  'rackwright.v1.StorageRegion': { '*': 'free' },
  'rackwright.v1.StoragePartition': { '*': 'free' },
  'rackwright.v1.NvmeController': { '*': 'free' },
  'rackwright.v1.CapacityFacts': { '*': 'free' },
  'rackwright.v1.DeviceHealth': { '*': 'free' },
  'rackwright.v1.SanitizeFacts': { '*': 'free' },
  'rackwright.v1.StorageSign': { '*': 'free' },
  'rackwright.v1.BmcDriveList': { '*': 'free' },
  'rackwright.v1.BmcParts': { '*': 'free' },
  'rackwright.v1.MemoryModule': { '*': 'free' },
  'rackwright.v1.FirmwareVersion': { '*': 'free' },
  'rackwright.v1.LldpNeighbor': { '*': 'free' },
  'rackwright.v1.HardwareHealth': { '*': 'free' },
  // Its parts are told apart within their host only.
  'rackwright.v1.BurnIn': { '*': 'free' },
  'rackwright.v1.BurnInPart': { '*': 'free' },
  // Shown to whoever asked, and kept nowhere.
  'rackwright.v1.BmcReading': { '*': 'free' },
  'rackwright.v1.BmcSensor': { '*': 'free' },
  'rackwright.v1.BmcLogEntry': { '*': 'free' },
  'rackwright.v1.FirmwareComponent': { '*': 'free' },
  'rackwright.v1.BiosSetting': { '*': 'free' },
  'rackwright.v1.BootOption': { '*': 'free' },
  'rackwright.v1.StepArgument': { '*': 'free' },
  'rackwright.v1.StepExit': { '*': 'free' },
  'google.protobuf.Timestamp': { '*': 'free' },
  'google.protobuf.Duration': { '*': 'free' },
};
