/** A held device of which a test changes some answers. */
import type { HeldDevice } from './block-devices.ts';

/** The device as it is, with other regions or answers about itself. */
export function changed(held: HeldDevice, change: Partial<HeldDevice>): HeldDevice {
  return {
    regions: held.regions,
    confirm: () => held.confirm(),
    checkAttached: () => held.checkAttached(),
    nvmeFormat: (mode) => held.nvmeFormat(mode),
    eraseItself: (method) => held.eraseItself(method),
    ownWork: () => held.ownWork(),
    readLog: () => held.readLog(),
    close: () => held.close(),
    ...change,
  };
}
