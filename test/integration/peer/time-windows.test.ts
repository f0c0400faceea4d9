/** Figures over windows by time: in the output of `admb train`, the status of a peer, its metrics and its row in the network. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Metrics } from '../../../src/learning/index.js'
import { train } from '../../../src/library/train.js'
import { admb } from '../../support/admb-command.js'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

const HOUR = 3_600_000

describe('windows by time', function () {
  this.timeout(60_000)
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-windows-'))
  })
  after(() => rm(folder, { recursive: true }))

  const trained = async (...args: string[]) => {
    const { code, stdout, stderr } = await admb(['train', '--json', ...args])
    assert.equal(code, 0, stderr)
    return (JSON.parse(stdout) as { metrics: Metrics }).metrics
  }
  const counts = ({ byTime }: Metrics) => byTime?.windows.map(({ seconds, inputs }) => [seconds, inputs])

  it('of rows follow the column of times, in CSV and JSON lines, in networks and batches', async () => {
    // 300 rows, one in ten minutes; the last one is 50 hours after the first.
    const moments = Array.from({ length: 301 }, (_, i) => new Date(i * (HOUR / 6)).toISOString().replace('.000Z', ''))
    const table = join(folder, 'rows.csv')
    await writeFile(table, `at,x,y\n${moments.map((at, i) => `${at},${i % 9},${i % 9 > 4 ? 'a' : 'b'}\n`).join('')}`)
    const timed = ['--data', table, '--label', 'y', '--time', 'at']
    const metrics = await trained(...timed)
    assert.deepEqual(counts(metrics), [
      [3600, 6],
      [86_400, 142]
    ])
    const { clock, until: end, late, undated } = metrics.byTime ?? {}
    assert.deepEqual([clock, end, late, undated], ['rows', '1970-01-03T02:00:00.000Z', 0, 0])
    assert.ok((metrics.byTime?.windows[1].loss ?? 9) < metrics.total.loss)
    for (const more of [
      ['--batch', '7'],
      ['--model', 'mlp'],
      ['--model', 'softmax'],
      ['--weight', 'x']
    ]) {
      const windows = counts(await trained(...timed, '--windows', '2h,30m', ...more))
      assert.deepEqual(
        windows,
        [
          [1800, 3],
          [7200, 12]
        ],
        more.join(' ')
      )
    }
    const data = { data: table, label: 'y', time: 'at' }
    const { report } = await train({ data })
    assert.deepEqual(report.metrics?.byTime, metrics.byTime)
    const { report: other } = await train({ data, windows: [7200] })
    assert.deepEqual(other.metrics && counts(other.metrics), [[7200, 12]])
    await assert.rejects(train({ data: 'digits', windows: [60] }), /windows need the times of inputs/)

    const schema = join(folder, 'schema.yaml')
    await writeFile(
      schema,
      'label:\n  name: y\n  kind: class\n  names: [a, b]\ncolumns:\n  - {name: x, kind: number}\n  - {name: at, kind: time, role: time}\n'
    )
    const lines = join(folder, 'rows.jsonl')
    // Seconds since 1970, and two rows without a time.
    const rows = [...moments.keys()].map(i => ({
      x: i % 9,
      y: i % 9 > 4 ? 'a' : 'b',
      at: i > 1 ? 86_400 * 19_676 + 600 * i : 'late'
    }))
    await writeFile(lines, rows.map(row => `${JSON.stringify(row)}\n`).join(''))
    const found = await trained('--data', lines, '--schema', schema)
    assert.deepEqual(counts(found), [
      [3600, 6],
      [86_400, 142]
    ])
    assert.equal(found.byTime?.undated, 2)

    const { stdout } = await admb(['train', ...timed])
    assert.match(stdout, /^last 1h {9}loss \S+, \S+ % correct \(6 inputs\)\nlast 1d {9}loss .* \(142 inputs\)$/m)
  })

  it('need times', async () => {
    const data = join(folder, 'plain.csv')
    await writeFile(data, `x,y\n${'1,a\n2,b\n'.repeat(20)}`)
    const refused = async (pattern: RegExp, ...args: string[]) => {
      const { code, stderr } = await admb(['train', '--data', data, '--label', 'y', ...args])
      assert.notEqual(code, 0)
      assert.match(stderr, pattern)
    }
    await refused(/--windows needs the times of inputs: name their column by --time/, '--windows', '1h')
    await refused(/must be 1 to 4 times of at least a second/, '--windows', '100s,2,3,4,5')
    assert.equal((await trained('--data', data, '--label', 'y')).byTime, undefined)
  })

  it('of a peer are those of arrival, or of the column, in status, metrics and network', async () => {
    const columns = [
      { name: 'x', kind: 'number' },
      { name: 'at', kind: 'time', role: 'time' }
    ] as const
    const spec = { ...SPEC, dimension: 2, features: { ...SPEC.features, columns, label: 'y' } }
    const listen = ['/ip4/127.0.0.1/tcp/0']
    for (const [clock, server] of [
      ['arrival', await PeerServer.start({}, { listen, windows: [90, 600] })],
      ['rows', await PeerServer.start({}, { listen, spec, windows: [90, 600] })]
    ] as const) {
      try {
        const { peer, url } = server
        const row = (i: number) =>
          clock === 'rows'
            ? { y: i % 2 ? 'yes' : 'no', x: i, at: 60 * i }
            : { label: i % 2 ? 'yes' : 'no', features: [i, 1, 1, 1] }
        const body = new TextEncoder().encode(Array.from({ length: 40 }, (_, i) => JSON.stringify(row(i))).join('\n'))
        await peer.request({ action: 'learn', format: 'jsonl', body })
        await until('the status has them', () => peer.status().metrics?.total.inputs === 40)
        const { byTime } = peer.status().metrics ?? {}
        assert.equal(byTime?.clock, clock)
        const expected = clock === 'rows' ? [2, 10] : [40, 40]
        assert.deepEqual(
          byTime?.windows.map(({ inputs }) => inputs),
          expected
        )
        const text = await (await fetch(`${url}/metrics`)).text()
        assert.match(text, /^admb_recent_accuracy\{window="90s"\} \d/m)
        assert.match(text, /^admb_recent_loss_nats\{window="10m"\} \d/m)
        await until('the row has them', () => peer.view.snapshot().peers[0]?.windows?.[1]?.inputs === expected[1])
        const contract = await OpenApiContract.of(url)
        for (const path of ['/status', '/peers']) await contract.check('get', path, await fetch(`${url}${path}`))
        const { stdout } = await admb(['status', '--http', url])
        assert.equal(/^last 90s +loss .* \(2 inputs\)$/m.test(stdout), clock === 'rows', stdout)
      } finally {
        await server.stop()
      }
    }
  })
})
