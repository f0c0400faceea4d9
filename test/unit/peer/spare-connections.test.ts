/** Contacts of tabs: which are remembered and passed on, and what a tab does with answers of other peers. */
import assert from 'node:assert/strict'
import { decodeReferral, type Network } from '../../../src/network/index.js'
import { Contacts, contactAddresses, SpareConnections } from '../../../src/peer/spare-connections.js'
import { until } from '../../support/peer-processes.js'

const RELAY = '12D3KooWFgFiFBmKdjjnFrwgFWsEnkd2JDCKeDRS8tKZJcvZ2ySW'
const SELF = '12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X'
const id = (index: number) => `tab${index}`
const ws = (peer: string) => `/ip4/10.0.0.1/tcp/7280/ws/p2p/${peer}`
const webRtc = (peer: string) => `${ws(RELAY)}/p2p-circuit/webrtc/p2p/${peer}`
const bytes = (text: string) => new TextEncoder().encode(text)

/** Real ids, since addresses are parsed. */
const PEERS = [RELAY, SELF, '12D3KooWH3uVF6wv47WnArKHk5p6cvgCJEb74UTmxztmQDc298L3']

describe('contacts', () => {
  it('are addresses that tabs can dial', () => {
    const tcp = `/ip4/10.0.0.1/tcp/4001/p2p/${RELAY}`
    assert.deepEqual(contactAddresses([tcp, ws(RELAY), 'nonsense', webRtc(SELF)]), [ws(RELAY), webRtc(SELF)])
    const long = `/dns4/${'a'.repeat(250)}/tcp/443/tls/ws/p2p/${RELAY}`
    assert.deepEqual(contactAddresses([long, ...Array(9).fill(ws(RELAY))]), Array(4).fill(ws(RELAY)))
  })

  it('are those of the peers that have announced them', () => {
    const contacts = new Contacts()
    contacts.add(SELF, [webRtc(RELAY), '/ip4/10.0.0.1/tcp/4001', id(1)])
    assert.deepEqual(contacts.choose(), [])
    contacts.add(SELF, [webRtc(SELF)])
    contacts.add(RELAY, [ws(RELAY)])
    assert.deepEqual(contacts.choose(new Set([SELF])), [{ id: RELAY, addresses: [ws(RELAY)] }])
  })

  it('are passed on to others, on request', () => {
    const contacts = new Contacts()
    for (const peer of PEERS) contacts.add(peer, [peer === RELAY ? ws(peer) : webRtc(peer)])
    assert.equal(contacts.answer(bytes('predictor 3'), SELF), undefined)
    const answer = contacts.answer(bytes('contacts'), SELF)
    assert.ok(answer)
    assert.deepEqual(new Set(decodeReferral(answer).map(one => one.id)), new Set([RELAY, PEERS[2]]))
    assert.deepEqual(decodeReferral(new Contacts().answer(bytes('contacts'), SELF) as Uint8Array), [])
  })
})

describe('a tab', () => {
  /** A network with one connected peer, which gives an answer. */
  const start = (answer: Uint8Array | Error, connect: (peer: string) => void) => {
    let asked = 0
    const network = {
      id: SELF,
      peers: [{ id: RELAY, addresses: [ws(RELAY)] }],
      fetch: async () => {
        asked++
        if (answer instanceof Error) throw answer
        return answer
      },
      connect: async ({ id }: { readonly id: string }) => connect(id)
    } as unknown as Network
    const spares = new SpareConnections(network, new Contacts(), () => undefined)
    return { spares, asked: () => asked }
  }

  it('connects to a tab that another peer names, and forgets it if that fails', async () => {
    const contacts = new Contacts()
    contacts.add(PEERS[2], [webRtc(PEERS[2])])
    contacts.add(SELF, [webRtc(SELF)])
    const tried: string[] = []
    const { spares } = start(contacts.answer(bytes('contacts'), RELAY) as Uint8Array, peer => {
      tried.push(peer)
      throw new Error('it has gone')
    })
    await until('two attempts', () => tried.length === 2)
    spares.stop()
    assert.deepEqual(tried, [PEERS[2], PEERS[2]], 'named again, so tried again, but never this tab itself')
  })

  it('asks again after malformed answers and failures', async () => {
    for (const answer of [bytes('[{"id":1}]'), bytes('nonsense'), new Error('nothing found')]) {
      const { spares, asked } = start(answer, assert.fail)
      await until('two questions', () => asked() >= 2)
      spares.stop()
    }
  }).timeout(60_000)

  it('asks at once when a connection is lost, and not after it has stopped', async () => {
    const { spares, asked } = start(new Error('nothing found'), assert.fail)
    await until('three questions', () => asked() >= 3)
    const before = asked()
    spares.lost()
    await until('a further one', () => asked() > before)
    spares.stop()
    const last = asked()
    spares.lost()
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(asked(), last)
  }).timeout(60_000)
})
