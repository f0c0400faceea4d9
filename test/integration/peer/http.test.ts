/** The HTTP API of a peer process, and `admb status`. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { LEARNERS, type PeerProcess, PeerProcesses } from '../../support/peer-processes.js'

interface Answer {
  readonly error?: string
  readonly code?: string
  readonly remedy?: string
  readonly predictions: readonly { readonly label: number | string; readonly scores: readonly number[] }[]
  readonly predictor: { readonly updates: number }
}

for (const learner of LEARNERS)
  describe(`a peer with ${learner} over HTTP`, function () {
    this.timeout(60_000)
    const processes = new PeerProcesses()
    let peer: PeerProcess

    before(async () => {
      peer = await processes
        .start(
          '--dimension',
          '4',
          '--class-names',
          'no,yes',
          '--batch',
          '2',
          ...(await processes.modelOptions(learner))
        )
        .ready()
    })
    after(() => processes.stop())

    async function post(action: string, body: string, type = 'application/json') {
      const url = `${peer.latest.http}/${action}`
      const response = await fetch(url, { method: 'POST', body, headers: { 'content-type': type } })
      return { code: response.status, answer: (await response.json()) as Answer }
    }

    it('learns an object, an array and JSON lines, and predicts with the result', async () => {
      const yes = { label: 'yes', features: { 3: 1 } }
      const no = { label: 'no', features: [1, 0, 0, 0] }
      assert.equal((await post('learn', JSON.stringify(yes))).code, 200)
      assert.equal((await post('learn', JSON.stringify([no, yes, no]))).code, 200)
      const lines = [yes, no].map(input => JSON.stringify(input)).join('\n')
      const last = await post('learn', lines.repeat(20).replaceAll('}{', '}\n{'), 'application/x-ndjson')
      assert.equal(last.code, 200)
      assert.equal(last.answer.predictions.length, 40)
      assert.ok(last.answer.predictor.updates >= 20)

      const { code, answer } = await post(
        'predict',
        JSON.stringify([{ features: { 3: 1 } }, { features: [1, 0, 0, 0] }])
      )
      assert.equal(code, 200)
      assert.deepEqual(
        answer.predictions.map(({ label }) => label),
        ['yes', 'no']
      )
      for (const { scores } of answer.predictions) {
        assert.equal(scores.length, 2)
        assert.ok(Math.abs(scores[0] + scores[1] - 1) < 1e-6)
      }
      assert.equal(answer.predictor.updates, last.answer.predictor.updates)
    })

    it('rejects bodies that are too large, and unknown routes', async () => {
      // The announced content length suffices for the answer, so nothing large is sent.
      const refused = await new Promise<{ code: number | undefined; text: string }>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': 9 * 1024 * 1024 }
        const announced = request(`${peer.latest.http}/learn`, { method: 'POST', headers }, response => {
          let text = ''
          response.on('data', part => {
            text += part
          })
          response.on('end', () => {
            announced.destroy()
            resolve({ code: response.statusCode, text })
          })
        })
        announced.on('error', reject)
        announced.write('[')
      })
      assert.equal(refused.code, 413)
      assert.match((JSON.parse(refused.text) as Answer).error ?? '', /large/i)
      const unknown = await post('lern', '{}')
      assert.equal(unknown.code, 404)
      assert.match(unknown.answer.error ?? '', /no such route: POST \/lern/)
    })

    it('stops although a client keeps its connection open', async () => {
      const idle = await processes.start('--dimension', '4').ready()
      const held = request(`${idle.latest.http}/learn`, { method: 'POST' })
      held.on('error', () => undefined)
      held.write('{"label":')
      await idle.fetchStatus()
      assert.equal(await idle.stop(), 0)
    })
  })
