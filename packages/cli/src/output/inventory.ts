/** Columns of a host's hardware as its runner and its BMC see it, and of its cables. */
import {
  type Cable,
  type ComparedPart,
  partKindText,
  partMatchText,
  partText,
  switchText,
} from '@rackwright/messages';
import type { TextColumn } from './table.ts';
import { instant } from './time.ts';

export const partColumns: readonly TextColumn<ComparedPart>[] = [
  { title: 'PART', value: partKindText },
  { title: 'HOST', value: ({ host }) => partText(host), widthMin: 16 },
  { title: 'BMC', value: ({ bmc }) => partText(bmc), widthMin: 16 },
  { title: 'COMPARED', value: partMatchText, widthMin: 8 },
];

export const cableColumns: readonly TextColumn<Cable>[] = [
  { title: 'INTERFACE', value: ({ card }) => card.name },
  { title: 'MAC', value: ({ card }) => card.mac },
  { title: 'LINK', value: ({ card }) => (card.linkUp ? 'up' : 'down') },
  { title: 'SWITCH', value: switchText, widthMin: 10 },
  { title: 'PORT', value: ({ neighbor }) => neighbor?.portId ?? '', widthMin: 8 },
  {
    title: 'DESCRIPTION',
    value: ({ neighbor }) => neighbor?.portDescription ?? '',
    widthMin: 8,
    dropOrder: 3,
  },
  { title: 'VLAN', value: ({ neighbor }) => String(neighbor?.portVlan ?? '') },
  {
    title: 'MANAGEMENT',
    value: ({ neighbor }) => neighbor?.managementAddresses.join(', ') ?? '',
    dropOrder: 2,
  },
  { title: 'HEARD', value: ({ neighbor }) => instant(neighbor?.heardTime), dropOrder: 1 },
];
