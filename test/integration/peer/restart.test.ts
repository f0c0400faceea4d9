/** Peers of each kind of model continue from their directories with the same options. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPeer } from '../../../src/library/create-peer.js'
import { kindsOfModels, writeData } from '../../support/model-kinds.js'
import { until } from '../../support/peer-processes.js'

describe('a restarted peer continues', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'admb-restart-'))
  before(() => writeData(folder))
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const [name, { data, label, ...options }] of kindsOfModels)
    it(name, async () => {
      const path = data === 'digits' ? data : join(folder, data)
      const stream = { data: path, passes: 1000, ...(label && { label }) }
      const start = () =>
        createPeer({ batch: 16, listen: [], rate: 400, ...options, data: stream, dir: join(folder, name) })
      const first = await start()
      await until('it has updated', () => first.status().predictor.updates > 1)
      await first.stop()
      const { inputs, predictor } = first.status()
      const second = await start()
      try {
        await until('it continues', () => second.status().inputs > inputs)
        assert.ok(second.status().predictor.updates >= predictor.updates)
        assert.equal(second.status().incarnation, 2)
      } finally {
        await second.stop()
      }
    })
})
