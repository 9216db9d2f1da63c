/** Serial consoles of hosts, heard through their BMCs. */
export {
  BootConsoles,
  type ConsoleBoot,
  defaultBootConsoleLimits,
  type OpenConsole,
} from './boot-consoles.ts';
