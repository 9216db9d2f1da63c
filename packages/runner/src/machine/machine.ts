/** The machine that the runner runs on, apart from its disks. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  BootId,
  CpuSchema,
  FirmwareVersionSchema,
  MemoryModuleSchema,
  NetworkInterfaceSchema,
  SystemIdentity,
} from '@rackwright/messages';
import type { Architecture } from '@rackwright/oci';
import type { BurnInMachine } from './burn-in-machine.ts';

export interface Machine {
  /** SMBIOS identity, raw, and the BMC's GUID as seen in band. */
  identity(): Promise<SystemIdentity>;
  /** The architecture that an image has to be for. Absent: unreported. */
  readonly architecture?: Architecture;
  hardware(): Promise<MachineHardware>;
  /** The BMC's address on the network as it says in band; empty: none, or it cannot be read. */
  bmcAddress(): Promise<string>;
  /** New with every start of the kernel. */
  bootId(): Promise<BootId>;
  /** Milliseconds since the kernel started. */
  uptimeMs(): Promise<number>;
  /** Absent: it cannot be worked hard. */
  readonly burnIn?: BurnInMachine;
  /** Program name → version, for certificates: kernel, node, nvme-cli. */
  toolVersions(): Promise<Record<string, string>>;
}

export interface MachineHardware {
  readonly cpus: MessageInitShape<typeof CpuSchema>[];
  readonly memoryBytes: bigint;
  readonly interfaces: MessageInitShape<typeof NetworkInterfaceSchema>[];
  /** Unset, like the next: unreported. */
  readonly memoryModules?: MessageInitShape<typeof MemoryModuleSchema>[];
  readonly firmware?: MessageInitShape<typeof FirmwareVersionSchema>[];
}
