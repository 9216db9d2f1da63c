/** What the lines of advice name: the host, its BMC, and the command that repeats its work. */
import {
  BootStepKind,
  type CredentialName,
  type DisabledStep,
  hasFault,
  PriorityPlace,
  type store,
} from '@rackwright/messages';
import { readImageName } from '../../images/index.ts';
import { idOf } from '../../records/index.ts';
import { protocolOf } from '../bmc/protocols.ts';
import { isDisabledByHost } from '../erasure/device-plan.ts';
import { hostId } from './explanation-draft.ts';
import { type RepeatCommand, repeatCommandOf } from './repeat-command.ts';

/** The names in the lines, in the form for commands. */
export interface AdviceNames {
  readonly host: string;
  readonly credential: CredentialName;
  /** Address and port, with the protocol, for reading. */
  readonly location: string;
  /** The value of `--bmc` for this host: with the port where it differs from the default. */
  readonly endpoint: string;
  /** Whether the work in progress is its deletion. */
  readonly isDeleted: boolean;
  /**
   * A clean would erase nothing under the present policy, and is refused until the policy changes.
   */
  readonly isCleanRefused: boolean;
  /** What disables the erasing step in cleans, where the failure names it. */
  readonly disabled: DisabledStep | undefined;
  /** Its BMC has refused the present credential: it is not asked with that again. */
  readonly isCredentialRefused: boolean;
  /** The command that repeats the failed work, or shows what does. */
  readonly repeatCommand: RepeatCommand;
  /** Another certificate than the pinned one, when the failure shows one. */
  readonly shownCertificate: string;
  /** "host:port" of the registry that the image comes from. */
  readonly registry: string;
  /** The boot step that was not reached, where the failure names it. */
  readonly missing: BootStepKind;
  /** Its boot MACs, and its rack without "racks/". */
  readonly macs: readonly string[];
  readonly rack: string;
  /** The owner of a foreign identity, when the failure names it; otherwise empty. */
  readonly owner: string;
}

export function namesOf(record: store.HostRecord): AdviceNames {
  const bmc = record.host?.spec?.bmc;
  const host = hostId(record);
  const protocol = protocolOf(bmc?.protocol);
  const port = bmc?.port ?? protocol.port;
  return {
    host,
    credential: bmc === undefined ? 'CREDENTIAL' : idOf(bmc.credential),
    location: `${bmc?.address ?? '?'}:${port} (${protocol.name})`,
    endpoint: bmc?.port === undefined ? 'ADDRESS' : `ADDRESS:${bmc.port}`,
    repeatCommand: repeatCommandOf(record, host),
    shownCertificate: shownCertificateOf(record),
    registry: registryOfImage(record.image),
    isDeleted: record.host?.status?.deletion !== undefined,
    owner: ownerNamed(record),
    macs: record.host?.spec?.bootMacs ?? [],
    rack: idOf(record.host?.spec?.rack),
    missing: missingOf(record),
    isCleanRefused: isCleanRefused(record),
    disabled: disabledIn(record),
    isCredentialRefused: isCredentialRefused(record),
  };
}

function isCredentialRefused({ host }: store.HostRecord): boolean {
  return hasFault(host?.status?.faults ?? [], 'bmcAuthentication');
}

function disabledIn(record: store.HostRecord): DisabledStep | undefined {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'disabledStep' ? kind.value : undefined;
}

function missingOf(record: store.HostRecord): BootStepKind {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'bootStalled' ? kind.value.missing : BootStepKind.UNSPECIFIED;
}

/** The host's record lacks the fleet's settings; the failure names them. */
function isCleanRefused(record: store.HostRecord): boolean {
  const by = disabledIn(record)?.by;
  if (by === PriorityPlace.FLEET || by === PriorityPlace.POOL) return true;
  return isDisabledByHost(record.host?.spec ?? {});
}

function registryOfImage(image: string): string {
  const read = readImageName(image);
  return read.kind === 'ok' ? read.name.registry : 'REGISTRY';
}

/** Without "hosts/"; empty where the failure does not name it. */
function ownerNamed(record: store.HostRecord): string {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'otherHost' ? idOf(kind.value.name) : '';
}

/** From the failure. */
function shownCertificateOf(record: store.HostRecord): string {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'shownCertificate' ? kind.value.sha256 : 'SHA256';
}
