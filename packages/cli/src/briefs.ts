/** The purpose of each word after `rackwright`: help names them without loading their code. */

export const briefs = {
  rack: 'Racks and their agents',
  host: 'Bare-metal hosts',
  credential: 'User names and passwords of BMCs',
  secrets: 'The key under which secrets are kept',
  fleet: 'What holds for every rack: freeze, wipe budget, priorities, registries',
  erasure: 'Erasure certificates',
  abandoned: 'What forced removals left behind',
  workflow: 'Templates that are run on hosts',
  pool: 'Hosts that are kept on one image, and how a new one is rolled out',
  image: 'Images of hosts: into registries, and into racks before they are needed',
  discovered: 'Machines that netbooted and are no hosts',
  expected: 'The manifest: hosts whose machines will netboot',
  template: 'Lists of steps that workflows run on hosts',
  events: 'What changes, as it changes, and what has happened',
  sink: 'Receivers of events, and what could not be delivered',
  audit: 'What was asked, by whom, and what came of it',
  token: 'Tokens of people and programs',
  whoami: 'Show who you are to the control plane, and what you may do where',
  trust: 'The certificate authorities of agents and the control plane',
  apply: 'Apply a file, showing first what changes',
  get: 'Print resources as files for apply',
  top: 'Watch the fleet: hosts by state, runs under way, what fails',
  context: 'Control planes by name: which is in use, where it is, who you are there',
  login: 'Sign in at an identity provider, by a code that you type in a browser',
  logout: 'Forget a sign-in',
  completion: 'Print what lets a shell complete commands and names',
  version: 'Show the version of this command and of the control plane',
  'support-bundle': 'Collect what helps others to find a problem, without secrets',
} as const;

export type RouteName = keyof typeof briefs;
