/**
 * The site of an nginx in front of the agent, which serves the files of boots: loaders, kernel and
 * ramdisk. Scripts, images and all else stay with the agent.
 *
 * G1 nginx sends nothing before the agent has answered its question for the same target with 200
 *    (`auth_request`). The agent reads the target as the host has sent it and decodes nothing. So a
 *    target that the two read differently is refused.
 * G2 Each name comes from the configuration, and its path is written here: no request supplies
 *    either.
 */
import type { NamedFile } from './boot/index.ts';
import type { AgentConfig } from './config.ts';

/** The location of nginx's question; no client can reach it. */
const leave = '/rackwright-leave';

/** Characters that nginx interprets in a quoted word, and those that end a line. */
const special = /["$\\\p{Cc}]/u;

export interface NginxConfig extends Pick<AgentConfig, 'files' | 'loaderFiles'> {
  readonly http: Pick<AgentConfig['http'], 'address' | 'port' | 'filesPort'>;
}

/** The text of the site. Throws when a port is not set, or a path has no form there. */
export function nginxSite({ http, files, loaderFiles }: NginxConfig): string {
  const { address, port, filesPort } = http;
  if (filesPort === 0) throw new Error('http.filesPort is 0: set the port that nginx is to have');
  if (port === 0) throw new Error('http.port is 0: set the port that nginx is to ask at');
  const listen = address === '0.0.0.0' ? String(filesPort) : `${address}:${filesPort}`;
  return [
    '# Made by "rackwright-agent nginx": make it anew when the agent\'s configuration changes.',
    'server {',
    `  listen ${listen};`,
    '  server_tokens off;',
    '  sendfile on;',
    '  tcp_nopush on;',
    '  default_type application/octet-stream;',
    '  types { }',
    '',
    `  location = ${leave} {`,
    '    internal;',
    // The address that the host has dialled: the agent knows its network by it.
    `    proxy_pass http://$server_addr:${port}$request_uri;`,
    '    proxy_method HEAD;',
    '    proxy_pass_request_headers off;',
    '    proxy_pass_request_body off;',
    '    proxy_connect_timeout 5s;',
    '    proxy_read_timeout 10s;',
    // Any other refusal would be an error of nginx.
    '    proxy_intercept_errors on;',
    '    error_page 400 404 414 421 429 =403 @refused;',
    '  }',
    '  location @refused { return 403; }',
    '  location / { return 404; }',
    ...[...loaderFiles, ...files].flatMap(location),
    '}',
    '',
  ].join('\n');
}

function location({ name, path }: NamedFile): string[] {
  if (special.test(path)) {
    throw new Error(
      `the path of ${name} has no form in nginx: it holds ", $, \\ or a control sign`,
    );
  }
  return [
    '',
    `  location ~ "^/boot/[^/]+/files/${name.replaceAll('.', '\\.')}$" {`,
    `    auth_request ${leave};`,
    `    alias "${path}";`,
    '  }',
  ];
}
