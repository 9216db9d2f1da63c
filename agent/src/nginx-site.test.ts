import { expect, test } from 'vitest';
import { parseConfig, parseWholeConfig } from './config.ts';
import { nginxSite } from './nginx-site.ts';

function siteOf(more: object): string {
  return nginxSite(parseConfig(JSON.stringify({ serverAddress: '192.0.2.1', ...more })));
}

const vmlinuz = { name: 'vmlinuz-6.1', path: '/srv/boot/vmlinuz 6.1' };

test('the site names each file, and asks the agent for permission', () => {
  const site = siteOf({ http: { filesPort: 8081 }, files: [vmlinuz] });
  expect(site).toContain('listen 8081;');
  expect(site).toContain('proxy_pass http://$server_addr:8080$request_uri;');
  const location = [
    '  location ~ "^/boot/[^/]+/files/vmlinuz-6\\.1$" {',
    '    auth_request /rackwright-leave;',
    '    alias "/srv/boot/vmlinuz 6.1";',
    '  }',
  ];
  expect(site).toContain(location.join('\n'));
  expect(site.match(/auth_request /g)).toHaveLength(site.match(/alias /g)?.length ?? 0);
});

test('the site listens where the agent does', () => {
  expect(siteOf({ http: { address: '192.0.2.1', filesPort: 81 } })).toContain(
    'listen 192.0.2.1:81;',
  );
});

test.each(['/srv/a"b', '/srv/$uri', '/srv/a\\b', '/srv/a\nb'])('the path %j is refused', (path) => {
  const wrong = () => siteOf({ http: { filesPort: 81 }, files: [{ name: 'kernel', path }] });
  expect(wrong).toThrow('the path of kernel has no form in nginx');
});

test('an error says which port is not set', () => {
  expect(() => siteOf({})).toThrow('http.filesPort is 0');
  expect(() => siteOf({ http: { port: 0, filesPort: 81 } })).toThrow('http.port is 0');
});

test.each([8080, 7443])('port %i for files is refused, because the agent uses it', (filesPort) => {
  const config = { serverAddress: '192.0.2.1', http: { filesPort } };
  expect(() => parseWholeConfig(JSON.stringify(config))).toThrow(
    'http.filesPort has to be another',
  );
});
