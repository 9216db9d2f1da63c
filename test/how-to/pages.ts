/** The pages that tell how a part is added, and the changes that each begins with. */
import type { Edit } from './scratch.ts';

export const pageLinesMax = 30;

export interface Page {
  readonly path: string;
  /** In order: after each stand the places that the compiler names, as the page lists them. */
  readonly stages: readonly (readonly Edit[])[];
}

const hostProto = 'proto/rackwright/v1/host.proto';

export const pages: readonly Page[] = [
  {
    path: 'packages/runner/ADD-A-CLEAN-STEP.md',
    stages: [
      [
        {
          path: 'packages/messages/src/step-names.ts',
          from: 'export function isErasure(',
          to: "export const polishStep = 'deploy.polish';\nexport function isErasure(",
        },
        {
          path: 'packages/messages/src/clean-steps.ts',
          from: '} as const satisfies',
          to: "  'deploy.polish': { name: 'deploy.polish', priority: 0 },\n} as const satisfies",
        },
      ],
    ],
  },
  {
    path: 'packages/bmc/ADD-A-DRIVER.md',
    stages: [
      [{ path: hostProto, from: '  BMC_PROTOCOL_REDFISH = 2;', to: bothProtocols() }],
      [
        {
          path: 'packages/messages/src/bmc-protocols.ts',
          from: "  [BmcProtocol.REDFISH]: 'redfish',",
          to: "  [BmcProtocol.REDFISH]: 'redfish',\n  [BmcProtocol.SMASH]: 'smash',",
        },
      ],
    ],
  },
  {
    path: 'packages/store/ADD-A-DRIVER.md',
    stages: [
      [
        {
          path: 'controlplane/src/config.ts',
          from: "  | { readonly driver: 'sqlite'; readonly path: string }",
          to: "  | { driver: 'etcd' }\n  | { readonly driver: 'sqlite'; readonly path: string }",
        },
      ],
    ],
  },
  {
    path: 'controlplane/ADD-A-HOST-METHOD.md',
    stages: [
      [
        {
          path: hostProto,
          from: '  rpc VerifyHost(',
          to: '  rpc PolishHost(VerifyHostRequest) returns (Host);\n  rpc VerifyHost(',
        },
      ],
      [
        {
          path: 'controlplane/src/host/pass/types.ts',
          from: "  | { readonly kind: 'verify' }",
          to: "  | { readonly kind: 'verify' }\n  | { readonly kind: 'polish' }",
        },
      ],
    ],
  },
];

function bothProtocols(): string {
  return '  BMC_PROTOCOL_REDFISH = 2;\n  BMC_PROTOCOL_SMASH = 9;';
}

/** The lists of a page, each below "The compiler then names", as sorted paths. */
export function namedPlaces(text: string): string[][] {
  return text
    .split(/^The compiler then names .*$/m)
    .slice(1)
    .map((part) => {
      const list = /^\n*((?:- .*\n(?: {2}.*\n)*)+)/.exec(part)?.[1] ?? '';
      return [...list.matchAll(/^- `([^`]+)`: \S/gm)].map(([, path = '']) => path).sort();
    });
}
