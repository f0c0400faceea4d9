/** The files for containers: the commands of Compose and Kubernetes run here as processes, and the manifests are type-checked. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse, parseAllDocuments } from 'yaml'
import { CommandSandbox, httpPort } from '../support/command-sandbox.js'
import { blocks } from '../support/documents.js'

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly serviceName?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: { readonly containers: readonly [{ readonly args: readonly string[] }] }
    }
  }
}

const manifests = () =>
  parseAllDocuments(readFileSync('deploy/kubernetes.yaml', 'utf8')).map(one => one.toJS() as Manifest)

describe('the files for containers', function () {
  this.timeout(120_000)
  let place: CommandSandbox
  before(() => {
    place = new CommandSandbox()
    place.run(`mkdir deploy\n${blocks('containers keys', 'docs/guides/containers.md')[0]}\ncp deploy/* .`)
  })
  afterEach(() => place.kill())
  after(() => place.remove())

  /** A command of a container, for a process: its paths and addresses here. */
  function here(command: string, name: string, peer: string): string {
    return command
      .replace('/state/peer', `${name}-state`)
      .replaceAll('/run/secrets/', '')
      .replaceAll('/keys/', '')
      .replace('/config/', '')
      .replace(/\/dns4\/[\w-]+\/tcp\/4280/, peer)
      .replace(/(?:0\.0\.0\.0|127\.0\.0\.1):7280/, '127.0.0.1:0')
      .replace('$(POD_NAME)', name)
  }

  async function startAll(commands: readonly (readonly [name: string, command: string])[]): Promise<string[]> {
    const started: string[] = []
    for (const [name, command] of commands) {
      // The first one may dial itself, as a pod does.
      const peer = /tcp\/(\d+)\/p2p/.exec(started[0] ?? '')?.[1] ?? '4280'
      started.push(await place.start(`npx admb ${here(command, name, `/dns4/localhost/tcp/${peer}`)}`))
    }
    return started
  }

  function neighbours(started: string): number {
    const status = place.run(
      `npx admb status --http 127.0.0.1:${httpPort(started)} --http-token-file http.token --json`
    )
    return (JSON.parse(status) as { neighbours: string[] }).neighbours.length
  }

  it('the image has the command of the package', () => {
    const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: { admb: string } }
    assert.deepEqual(/ln -s (\S+) (\S+)/.exec(readFileSync('Containerfile', 'utf8'))?.slice(1), [
      `/opt/admb/${bin.admb}`,
      '/usr/local/bin/admb'
    ])
  })

  it('Compose: three peers become one network and are healthy', async () => {
    const { services } = parse(readFileSync('deploy/compose.yaml', 'utf8'), { merge: true }) as {
      services: Readonly<Record<string, { readonly command: string; readonly secrets: readonly string[] }>>
    }
    const started = await startAll(Object.entries(services).map(([name, { command }]) => [name, command]))
    assert.equal(started.length, 3)
    while (started.reduce((sum, one) => sum + neighbours(one), 0) < 4) await sleep(200)
    for (const one of started) {
      const ready = async () => (await fetch(`http://127.0.0.1:${httpPort(one)}/readyz`)).status
      while ((await ready()) !== 200) await sleep(200)
    }
  })

  it('Kubernetes: the pods become one network and are ready when they have learned', async () => {
    const config = manifests().find(({ kind }) => kind === 'ConfigMap')
    writeFileSync(join(place.folder, 'peer.yaml'), config?.data?.['peer.yaml'] ?? '')
    const [{ args }] = manifests().find(({ kind }) => kind === 'StatefulSet')?.spec?.template?.spec.containers ?? [
      { args: [] }
    ]
    const started = await startAll(['admb-0', 'admb-1'].map(name => [name, args.map(arg => `'${arg}'`).join(' ')]))
    while (neighbours(started[1]) < 1) await sleep(200)
    const url = `http://127.0.0.1:${httpPort(started[0])}`
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    const token = readFileSync(join(place.folder, 'http.token'), 'utf8').trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify(
      Array.from({ length: 200 }, (_, i) => ({ label: i % 2 ? 'yes' : 'no', features: { x: i % 2 } }))
    )
    assert.equal((await fetch(`${url}/learn`, { method: 'POST', headers, body })).status, 200)
    while ((await fetch(`${url}/readyz`)).status !== 200) await sleep(100)
  })

  it('Kubernetes: the manifests fit the types of its API, and one another', () => {
    const all = manifests()
    const set = all.find(({ kind }) => kind === 'StatefulSet')
    const services = all.filter(({ kind }) => kind === 'Service')
    assert.ok(services.some(({ metadata }) => metadata.name === set?.spec?.serviceName))
    for (const { spec } of services) assert.deepEqual(spec?.selector, set?.spec?.template?.metadata.labels)
    const modules: Readonly<Record<string, string>> = { v1: 'core/v1', 'apps/v1': 'apps/v1', 'policy/v1': 'policy/v1' }
    const program = all.map((manifest, i) => {
      const { apiVersion, kind } = manifest
      const type = `import type { ${kind} as Kind${i} } from 'kubernetes-types/${modules[apiVersion]}.js'`
      return `${type}\nexport const manifest${i}: Kind${i} = ${JSON.stringify(manifest)}\n`
    })
    // Below the repository, where the compiler finds the types.
    const folder = resolve('artifacts', `kubernetes-${process.pid}`)
    mkdirSync(folder, { recursive: true })
    try {
      writeFileSync(join(folder, 'manifests.ts'), program.join(''))
      const options = [
        '--ignoreConfig',
        '--strict',
        '--noEmit',
        '--skipLibCheck',
        '--module',
        'preserve',
        '--types',
        ''
      ]
      execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', ...options, join(folder, 'manifests.ts')], {
        encoding: 'utf8'
      })
    } catch (error) {
      assert.fail((error as { stdout?: string }).stdout ?? String(error))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
