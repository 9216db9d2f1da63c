/** A host as templates see it, for this package's tests. */
import type { RenderScope, TemplateHost } from './types.ts';

export const host: TemplateHost = {
  name: 'hosts/h1',
  id: 'h1',
  uid: '4f6c',
  rack: 'r1',
  labels: { role: 'worker', 'example.com/site': 'north' },
  bmc: { address: '192.0.2.7' },
  bootMacs: ['52:54:00:00:00:01', '52:54:00:00:00:02'],
  serial: "SN'1",
  manufacturer: undefined,
  product: 'Box 9',
  memoryBytes: 68_719_476_736n,
  disks: [
    {
      serial: 'D1',
      wwn: undefined,
      model: 'Disk',
      sizeBytes: 1_000_204_886_016n,
      kernelName: 'sda',
    },
  ],
  interfaces: [{ name: 'eth0', mac: '52:54:00:00:00:01', speedMbps: undefined, linkUp: true }],
};

export function scopeOf(variables: Readonly<Record<string, string>> = {}): RenderScope {
  return { host, variables, run: { number: 3n } };
}
