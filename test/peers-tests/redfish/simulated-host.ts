/** A simulated Redfish BMC for clients that others wrote, and what it was asked. */
import {
  type PowerOnBoot,
  type RedfishBmc,
  type RedfishHabits,
  startRedfishBmc,
} from '@rackwright/sim/redfish';

export const user = 'operator';
export const password = 'word-that-hides';

export interface SimulatedHost {
  readonly bmc: RedfishBmc;
  /** What the machine itself went through. */
  readonly events: readonly string[];
}

export async function startSimulatedHost(
  habits: Partial<RedfishHabits> = {},
): Promise<SimulatedHost> {
  const events: string[] = [];
  let isOn = false;
  const bmc = await startRedfishBmc({
    user,
    password,
    identity: {
      uuid: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01',
      serial: 'HOST-0001',
      manufacturer: 'Rackwright',
      model: 'Software Machine',
      chassisSerial: 'CHS-0001',
    },
    machine: {
      powerOn: ({ device, mode }: PowerOnBoot) => {
        isOn = true;
        events.push(`on, booting ${device} (${mode})`);
      },
      powerOff: () => {
        isOn = false;
        events.push('off');
      },
      isOn: () => isOn,
    },
    inventory: {
      processors: [{ manufacturer: 'Maker', model: 'Fast', cores: 8, threads: 16 }],
      memory: [{ capacityMiB: 8_192, serial: 'MEM-1' }],
      drives: [
        {
          serial: 'DRV-1',
          model: 'Round',
          manufacturer: 'Maker',
          capacityBytes: 1_000_000_000,
          media: 'SSD',
          protocol: 'NVMe',
        },
      ],
    },
    habits: { powerDelayMs: [300, 300], ...habits },
  });
  return { bmc, events };
}

/** The kinds of request so far, each once: how often a client polls is chance. */
export function requestLines({ bmc }: SimulatedHost): string[] {
  const lines = bmc.calls().map(({ method, path, status }) => `  ${method} ${path} ${status}`);
  return [...new Set(lines)];
}
