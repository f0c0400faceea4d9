/** Peers that receive classes that their schema lacks. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const rows = (classes: readonly string[], count: number) =>
  Array.from(
    { length: count },
    (_, i) => `${'bcdxyz'.indexOf(classes[i % classes.length])},${classes[i % classes.length]}\n`
  ).join('')

describe('peers with room for more classes', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const post = async ({ latest }: PeerProcess, action: 'predict' | 'learn', inputs: readonly object[]) => {
    const response = await fetch(`${latest.http}/${action}`, {
      method: 'POST',
      body: JSON.stringify(inputs),
      headers: { 'content-type': 'application/json' }
    })
    return ((await response.json()) as { predictions: readonly { label: string; error?: string }[] }).predictions
  }

  it('give new classes the same numbers, and keep them after a restart', async () => {
    const dir = await processes.scratch()
    const files = await Promise.all(
      [
        ['b', 'c', 'x'],
        ['c', 'b', 'y']
      ].map(async (classes, i) => {
        const file = join(dir, `${i}.csv`)
        await writeFile(file, `k,t\n${rows(['b', 'c'], 40)}${rows(classes, 4000)}`)
        return file
      })
    )
    const file = join(dir, 'schema.yaml')
    await writeFile(file, 'columns: [{ name: k, kind: category }]\nlabel: { name: t, kind: class, names: [b, c] }\n')
    const common = ['--schema', file, '--hash-bits', '8']
    const options = [
      ...common,
      '--classes',
      '..4',
      '--batch',
      '16',
      '--rate',
      '1500',
      '--http',
      '0',
      '--passes',
      '1000'
    ]
    const a = await processes.start('--data', files[0], ...options, '--dir', join(dir, 'a')).ready()
    const b = await processes
      .start('--data', files[1], ...options, '--dir', join(dir, 'b'), '--peer', a.latest.addresses[0])
      .ready()
    // Names that a predictor lacks are proposed again, so both are added however late the peers link.
    const names = (peer: PeerProcess) => (peer.latest.addedClasses ?? []).join()
    await until('both agree', () => names(a).length === 3 && names(a) === names(b))
    await until('rows are learned', () => Math.min(a.latest.inputs, b.latest.inputs) > 6000)
    const added = a.latest.addedClasses ?? []
    assert.deepEqual([...added].sort(), ['x', 'y'])
    assert.deepEqual(b.latest.addedClasses, added)
    const asked = ['b', 'c', 'x', 'y']
    const inputs = asked.map(name => ({ k: String('bcdxyz'.indexOf(name)) }))
    for (const peer of [a, b]) {
      assert.deepEqual(
        (await post(peer, 'predict', inputs)).map(({ label }) => label),
        asked
      )
      assert.equal(peer.latest.skipped, 0)
    }
    const schema = (await (await fetch(`${b.latest.http}/schema`)).json()) as { label: object }
    assert.deepEqual(schema.label, { name: 't', kind: 'class', names: ['b', 'c'], classes: 4, added })
    // There is no room for a fifth class.
    await post(b, 'learn', [{ k: '5', t: 'z' }])
    await until('it is skipped', () => b.latest.skipped === 1)
    assert.ok(b.logs.some(({ msg }) => /"z" is not among the classes, and there is no room/.test(msg)))
    await a.stop()
    await b.stop()

    const again = await processes.start(...options, '--data', files[1], '--dir', join(dir, 'b')).ready()
    await until('the state is read', () => (again.latest.addedClasses ?? []).length > 0)
    assert.deepEqual(again.latest.addedClasses, added)
    assert.deepEqual(
      (await post(again, 'predict', inputs)).map(({ label }) => label),
      asked
    )
    const other = await processes
      .start(...common, '--classes', '..5', '--batch', '16', '--data', files[0], '--peer', again.latest.addresses[0])
      .ready()
    await until('another maximum is refused', () => other.logs.some(({ msg }) => /dimension|classes/.test(msg)))
  })
})
