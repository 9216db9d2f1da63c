/** Serial consoles of hosts, heard through their BMCs. */
export { BootConsoles, type ConsoleBoot, defaultBootConsoleLimits } from './boot-consoles.ts';
export { Scrollback } from './scrollback.ts';
export { type OpenConsole, SharedConsoles } from './shared-consoles.ts';
