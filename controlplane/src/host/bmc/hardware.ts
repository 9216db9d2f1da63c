/**
 * The hardware health that a host's BMC reports, as a fault. Power polls set it, and clear it when
 * the BMC reports that it is over. It prevents nothing: a host with a failed fan may still be
 * erased.
 */
import {
  actors,
  FaultSeverity,
  type HardwareHealth,
  HealthLevel,
  hasFault,
} from '@rackwright/messages';
import { clearFault, setFault } from '../pass/fault.ts';
import { type Pass, recordCause } from '../pass/pass.ts';

export const hardwareCritical = 'hardwareCritical';

/** An unknown or missing level changes nothing. */
export function foldHardware(pass: Pass, { level, message }: HardwareHealth): void {
  const present = hasFault(pass.status.faults, hardwareCritical);
  switch (level) {
    case HealthLevel.CRITICAL: {
      const text = message === '' ? '' : `: ${message}`;
      const finding = `its BMC says that its hardware is critical${text}`;
      setFault(pass, hardwareCritical, finding, { severity: FaultSeverity.WARNING });
      if (!present) recordCause(pass, actors.agent, `${hardwareCritical}: ${finding}`);
      return;
    }
    case HealthLevel.OK:
    case HealthLevel.WARNING:
      if (!present) return;
      clearFault(pass, hardwareCritical);
      recordCause(pass, actors.agent, `${hardwareCritical} is over`);
      return;
    case HealthLevel.UNSPECIFIED:
      return;
  }
}
