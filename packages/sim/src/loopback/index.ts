/** What needs the real sockets of this machine: ports for programs to listen on. */
export { freePorts } from './ports.ts';
