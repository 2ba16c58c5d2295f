// One run of a radio cell with ns-3: IEEE 802.15.4 (LrWpan), 802.11b (YansWifi) or AODV over 802.11b, among nodes that
// stand or move. Prints one line of
// JSON. `compare/radio.rs` compiles and starts this program; docs/evidence/validation.md says what is compared.
//
// Every attribute of ns-3 can be set from the command line.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ns3/aodv-module.h>
#include <ns3/core-module.h>
#include <ns3/error-model.h>
#include <ns3/internet-module.h>
#include <ns3/lr-wpan-module.h>
#include <ns3/mobility-module.h>
#include <ns3/network-module.h>
#include <ns3/propagation-module.h>
#include <ns3/spectrum-module.h>
#include <ns3/traffic-control-module.h>
#include <ns3/wifi-module.h>

using namespace ns3;

namespace
{

// Seconds until the first frame.
constexpr double BEGIN = 1.0;

// Command line.
struct Options
{
    std::string scene = "star";
    uint32_t stations = 1;
    // Frames or packets per second of each sender, at random but in "aodv"; 0: a sender always has a frame.
    double rate = 0.0;
    // Bytes: the PSDU (802.15.4), the MPDU (802.11), or the IP packet (AODV).
    uint32_t bytes = 127;
    // Metres: the radius of a star, the distance of the one sender, or that of the two hidden senders.
    double distance = 10.0;
    double otherDistance = 10.0;
    double exponent = 4.0;
    // Rate of all 802.11 frames: ns-3 answers at the rate of the data, for to it all rates of DSSS are basic rates.
    std::string mode = "DsssRate2Mbps"; // or DsssRate11Mbps
    bool rts = false;
    // Metres.
    double range = 100.0;
    double sensed = 100.0;
    // A clear channel assessment observes all of its eight symbols.
    bool wholeCca = false;
    // AODV is not told of packets that the MAC gives up.
    bool fixedRoutes = false;
    // AODV sends Hello messages.
    bool hello = false;
    // AODV is told of each packet that the MAC gives up, and takes no neighbour for gone before.
    bool feedback = false;
    // Movements in the format of ns-2, and how many of the nodes send.
    std::string movements;
    uint32_t sources = 1;
    double seconds = 10.0;
    // Seconds before that are not counted.
    double warmup = 0.0;
    uint64_t run = 1;
};

// What was counted after the warm-up.
struct Count
{
    // Frames or packets that arrived, each once.
    uint64_t delivered{0};
    // Data frames that were on air.
    uint64_t onAir{0};
    // Frames or packets handed to the senders.
    uint64_t offered{0};
    // Messages of AODV that nodes have sent or passed on, and Hello messages among them.
    uint64_t routing{0};
    uint64_t hellos{0};
    Time from;

    void Add(uint64_t& counter)
    {
        if (Simulator::Now() >= from)
        {
            ++counter;
        }
    }
};

Count g_count;

Ptr<ConstantPositionMobilityModel>
At(double x, double y)
{
    Ptr<ConstantPositionMobilityModel> place = CreateObject<ConstantPositionMobilityModel>();
    place->SetPosition(Vector(x, y, 0.0));
    return place;
}

// A packet with a number, by which copies are known.
Ptr<Packet>
Numbered(uint32_t number, uint32_t bytes)
{
    std::vector<uint8_t> content(bytes, 0);
    for (uint32_t i = 0; i < 4; ++i)
    {
        content[i] = static_cast<uint8_t>(number >> (8 * i));
    }
    return Create<Packet>(content.data(), bytes);
}

uint32_t
NumberOf(Ptr<const Packet> packet)
{
    uint8_t content[4] = {};
    packet->CopyData(content, 4);
    return content[0] | content[1] << 8 | content[2] << 16 | static_cast<uint32_t>(content[3]) << 24;
}

// Frames at independent random times, or one after another.
class Arrivals
{
  public:
    Arrivals(double rate, std::function<void()> send)
        : m_send(std::move(send)),
          m_gap(CreateObject<ExponentialRandomVariable>())
    {
        m_gap->SetAttribute("Mean", DoubleValue(1.0 / rate));
        Next();
    }

  private:
    void Next()
    {
        Simulator::Schedule(Seconds(m_gap->GetValue()), &Arrivals::Arrive, this);
    }

    void Arrive()
    {
        m_send();
        Next();
    }

    std::function<void()> m_send;
    Ptr<ExponentialRandomVariable> m_gap;
};

// Makes the PHY's clear channel assessment observe all of its eight symbols. LrWpanPhy::EndCca asks for the state at the
// end, and for the power of signals that begin in between: a frame that ends in between goes unnoticed.
class WholeCca
{
  public:
    explicit WholeCca(Ptr<LrWpanNetDevice> device)
        : m_mac(device->GetMac())
    {
        device->GetPhy()->TraceConnectWithoutContext("TrxState", MakeCallback(&WholeCca::Changed, this));
        device->GetPhy()->SetPlmeCcaConfirmCallback(MakeCallback(&WholeCca::Confirm, this));
    }

  private:
    void Changed(Time now, LrWpanPhyEnumeration before, LrWpanPhyEnumeration)
    {
        if (before == IEEE_802_15_4_PHY_BUSY_RX)
        {
            m_busyUntil = now;
        }
    }

    void Confirm(LrWpanPhyEnumeration status)
    {
        bool heard = m_busyUntil > Simulator::Now() - MicroSeconds(8 * 16);
        m_mac->PlmeCcaConfirm(status == IEEE_802_15_4_PHY_IDLE && heard ? IEEE_802_15_4_PHY_BUSY : status);
    }

    Ptr<LrWpanMac> m_mac;
    Time m_busyUntil;
};

// An 802.15.4 station.
class Sensor
{
  public:
    Sensor(Ptr<Node> node, Ptr<SpectrumChannel> channel, uint16_t address, const Options& options)
        : m_device(CreateObject<LrWpanNetDevice>()),
          m_options(options)
    {
        m_device->SetChannel(channel);
        node->AddDevice(m_device);
        m_device->SetNode(node);
        m_device->GetPhy()->SetMobility(node->GetObject<MobilityModel>());
        uint8_t octets[2] = {static_cast<uint8_t>(address >> 8), static_cast<uint8_t>(address)};
        Mac16Address own;
        own.CopyFrom(octets);
        m_device->GetMac()->SetShortAddress(own);
        m_device->GetMac()->SetPanId(PAN);
        m_device->GetMac()->SetMcpsDataConfirmCallback(MakeCallback(&Sensor::Confirmed, this));
        m_device->GetMac()->SetMcpsDataIndicationCallback(MakeCallback(&Sensor::Arrived, this));
        m_device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Sensor::Begun, this));
        if (options.wholeCca)
        {
            m_cca = std::make_unique<WholeCca>(m_device);
        }
    }

    // Sends a frame to the first station, or to all without acknowledgement.
    void Send()
    {
        g_count.Add(g_count.offered);
        McpsDataRequestParams request;
        request.m_srcAddrMode = SHORT_ADDR;
        request.m_dstAddrMode = SHORT_ADDR;
        request.m_dstPanId = PAN;
        bool toAll = m_options.scene == "prr";
        request.m_dstAddr = toAll ? Mac16Address("ff:ff") : Mac16Address("00:01");
        request.m_txOptions = toAll ? TX_OPTION_NONE : TX_OPTION_ACK;
        m_device->GetMac()->McpsDataRequest(request, Numbered(++m_number, m_options.bytes - OVERHEAD));
    }

  private:
    void Confirmed(McpsDataConfirmParams)
    {
        if (m_options.rate == 0.0)
        {
            // Within the confirmation the MAC still has the last frame.
            Simulator::ScheduleNow(&Sensor::Send, this);
        }
    }

    // LrWpanMac passes on copies too.
    void Arrived(McpsDataIndicationParams indication, Ptr<Packet> packet)
    {
        uint32_t& last = m_last[indication.m_srcAddr];
        uint32_t number = NumberOf(packet);
        if (number != last)
        {
            g_count.Add(g_count.delivered);
        }
        last = number;
    }

    void Begun(Ptr<const Packet> packet)
    {
        if (packet->GetSize() == m_options.bytes)
        {
            g_count.Add(g_count.onAir);
        }
    }

    static constexpr uint16_t PAN = 7;
    // Header with two short addresses and one PAN, and FCS.
    static constexpr uint32_t OVERHEAD = 9 + 2;

    Ptr<LrWpanNetDevice> m_device;
    const Options& m_options;
    std::unique_ptr<WholeCca> m_cca;
    uint32_t m_number{0};
    std::map<Mac16Address, uint32_t> m_last;
};

// Keeps what scenes make until the end of the run.
struct Kept
{
    std::vector<std::unique_ptr<Sensor>> sensors;
    std::vector<std::unique_ptr<Arrivals>> arrivals;
};

// Scenes of 802.15.4: "star", "hidden", "prr". Station 1 receives.
void
SetUpSensors(const Options& options, Kept& kept)
{
    Ptr<LogDistancePropagationLossModel> loss = CreateObject<LogDistancePropagationLossModel>();
    loss->SetPathLossExponent(options.exponent);
    loss->SetReference(1.0, 40.2);
    Ptr<SingleModelSpectrumChannel> channel = CreateObject<SingleModelSpectrumChannel>();
    channel->AddPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    for (uint32_t i = 0; i <= options.stations; ++i)
    {
        Ptr<Node> node = CreateObject<Node>();
        double angle = 2.0 * M_PI * i / options.stations;
        if (i == 0)
        {
            node->AggregateObject(At(0.0, 0.0));
        }
        else if (options.scene == "hidden")
        {
            node->AggregateObject(At(i == 1 ? -options.distance : options.otherDistance, 0.0));
        }
        else
        {
            node->AggregateObject(At(options.distance * cos(angle), options.distance * sin(angle)));
        }
        kept.sensors.push_back(std::make_unique<Sensor>(node, channel, i + 1, options));
        if (i > 0)
        {
            Sensor* sensor = kept.sensors.back().get();
            Simulator::Schedule(Seconds(BEGIN), [&options, &kept, sensor] {
                if (options.rate == 0.0)
                {
                    sensor->Send();
                }
                else
                {
                    kept.arrivals.push_back(std::make_unique<Arrivals>(options.rate, [sensor] { sensor->Send(); }));
                }
            });
        }
    }
}

// A frame that is on air.
struct OnAir
{
    uint64_t uid;
    Vector place;
    Time begin;
    Time end;
};

std::vector<OnAir> g_onAir;

// Spoils a frame that overlaps with another of more than a tenth of its power, and no others: the rule of our 802.11. ns-3
// takes DSSS's bit errors from formulas of its own, whichever error-rate model it has: at 2 Mbit/s a frame survives another
// of the same power.
class Overlap : public ErrorModel
{
  public:
    Overlap(Ptr<MobilityModel> receiver, double sensed)
        : m_receiver(receiver),
          m_sensed(sensed)
    {
    }

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        auto is = [packet](const OnAir& frame) { return frame.uid == packet->GetUid(); };
        auto own = std::find_if(g_onAir.rbegin(), g_onAir.rend(), is);
        NS_ABORT_MSG_IF(own == g_onAir.rend(), "a frame that nobody has sent");
        Vector place = m_receiver->GetPosition();
        double distance = CalculateDistance(own->place, place);
        return std::any_of(g_onAir.begin(), g_onAir.end(), [&](const OnAir& other) {
            double from = CalculateDistance(other.place, place);
            bool overlaps = other.begin < own->end && other.end > own->begin;
            return &other != &*own && overlaps && from > 0.0 && from <= m_sensed && from < sqrt(10.0) * distance;
        });
    }

    void DoReset() override
    {
    }

    Ptr<MobilityModel> m_receiver;
    double m_sensed;
};

// dBm received over that many metres of free space from 20 dBm.
double
PowerAt(double metres)
{
    constexpr double FREQUENCY = 2.412e9;
    return 20.0 + 20.0 * log10(299792458.0 / FREQUENCY / (4.0 * M_PI * metres));
}

void
BeginOnAir(Vector place, double mbps, Ptr<const Packet> packet, double)
{
    Time now = Simulator::Now();
    g_onAir.erase(std::remove_if(g_onAir.begin(),
                                 g_onAir.end(),
                                 [now](const OnAir& frame) { return frame.end < now - MilliSeconds(50); }),
                  g_onAir.end());
    // Long preamble and PLCP header.
    Time length = MicroSeconds(192 + std::lround(ceil(packet->GetSize() * 8 / mbps)));
    g_onAir.push_back({packet->GetUid(), place, now, now + length});
    // RTS, CTS and ACK have at most 20 bytes, routing messages less than 150.
    if (packet->GetSize() > 200)
    {
        g_count.Add(g_count.onAir);
    }
}

// 802.11b devices in an ad hoc network.
NetDeviceContainer
InstallWifi(const Options& options, const NodeContainer& nodes, uint32_t queue)
{
    Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
    Ptr<FriisPropagationLossModel> loss = CreateObject<FriisPropagationLossModel>();
    loss->SetFrequency(2.412e9);
    Ptr<RangePropagationLossModel> end = CreateObject<RangePropagationLossModel>();
    end->SetAttribute("MaxRange", DoubleValue(options.sensed * 1.000001));
    loss->SetNext(end);
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());

    // A hundredth of a dB is for the rounding.
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.Set("TxPowerStart", DoubleValue(20.0));
    phy.Set("TxPowerEnd", DoubleValue(20.0));
    phy.Set("RxSensitivity", DoubleValue(PowerAt(options.sensed) - 0.01));
    phy.Set("CcaSensitivity", DoubleValue(PowerAt(options.sensed) - 0.01));
    phy.Set("CcaEdThreshold", DoubleValue(PowerAt(options.sensed) - 0.01));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "Threshold",
                                  DoubleValue(10.0),
                                  "MinimumRssi",
                                  DoubleValue(PowerAt(options.range) - 0.01));

    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue(options.mode),
                                 "ControlMode",
                                 StringValue(options.mode),
                                 "NonUnicastMode",
                                 StringValue(options.mode),
                                 "RtsCtsThreshold",
                                 UintegerValue(options.rts ? 0 : 2347));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100'000)));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    double mbps = options.mode == "DsssRate11Mbps" ? 11.0 : 2.0;
    for (uint32_t i = 0; i < devices.GetN(); ++i)
    {
        Ptr<WifiPhy> device = DynamicCast<WifiNetDevice>(devices.Get(i))->GetPhy();
        Ptr<MobilityModel> place = nodes.Get(i)->GetObject<MobilityModel>();
        device->SetPostReceptionErrorModel(Create<Overlap>(place, options.sensed));
        device->TraceConnectWithoutContext(
            "PhyTxBegin",
            Callback<void, Ptr<const Packet>, double>(
                [place, mbps](Ptr<const Packet> packet, double power) {
                    BeginOnAir(place->GetPosition(), mbps, packet, power);
                }));
    }
    return devices;
}

void
SendWifi(Ptr<NetDevice> device, Address to, uint32_t mpdu)
{
    // Header, LLC and SNAP, FCS.
    constexpr uint32_t OVERHEAD = 24 + 8 + 4;
    g_count.Add(g_count.offered);
    device->Send(Create<Packet>(mpdu - OVERHEAD), to, 0x88b5);
}

bool
ReceiveWifi(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&)
{
    g_count.Add(g_count.delivered);
    return true;
}

// Scene "dcf": 802.11. Station 0 receives.
void
SetUpWifi(const Options& options, Kept& kept)
{
    NodeContainer nodes(options.stations + 1);
    for (uint32_t i = 0; i <= options.stations; ++i)
    {
        double angle = 2.0 * M_PI * i / options.stations;
        double x = i == 0 ? 0.0 : options.distance * cos(angle);
        double y = i == 0 ? 0.0 : options.distance * sin(angle);
        nodes.Get(i)->AggregateObject(At(x, y));
    }
    NetDeviceContainer devices = InstallWifi(options, nodes, 1'000'000);
    devices.Get(0)->SetReceiveCallback(MakeCallback(&ReceiveWifi));
    Address to = devices.Get(0)->GetAddress();
    for (uint32_t i = 1; i <= options.stations; ++i)
    {
        Ptr<WifiNetDevice> device = DynamicCast<WifiNetDevice>(devices.Get(i));
        std::function<void()> send = [device, to, &options] { SendWifi(device, to, options.bytes); };
        if (options.rate > 0.0)
        {
            Simulator::Schedule(Seconds(BEGIN), [&options, &kept, send] {
                kept.arrivals.push_back(std::make_unique<Arrivals>(options.rate, send));
            });
            continue;
        }
        // Several wait, so that the next frame is there when one is done.
        for (uint32_t k = 0; k < 3; ++k)
        {
            Simulator::Schedule(Seconds(BEGIN), send);
        }
        device->GetMac()->TraceConnectWithoutContext(
            "AckedMpdu",
            Callback<void, Ptr<const WifiMpdu>>([send](Ptr<const WifiMpdu>) { Simulator::ScheduleNow(send); }));
        device->GetMac()->TraceConnectWithoutContext(
            "DroppedMpdu",
            Callback<void, WifiMacDropReason, Ptr<const WifiMpdu>>(
                [send](WifiMacDropReason, Ptr<const WifiMpdu>) { Simulator::ScheduleNow(send); }));
    }
}

void
Drain(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
        g_count.Add(g_count.delivered);
    }
}

// A datagram, and the next one after the interval.
void
SendDatagram(Ptr<Socket> socket, uint32_t bytes, Time interval)
{
    g_count.Add(g_count.offered);
    socket->Send(Create<Packet>(bytes));
    Simulator::Schedule(interval, &SendDatagram, socket, bytes, interval);
}

// Counts a packet that a node sends or passes on, if it is of AODV.
void
CountRouting(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
{
    Ptr<Packet> copy = packet->Copy();
    Ipv4Header ip;
    UdpHeader udp;
    aodv::TypeHeader type(aodv::AODVTYPE_RREQ);
    copy->RemoveHeader(ip);
    if (ip.GetProtocol() != UdpL4Protocol::PROT_NUMBER || copy->RemoveHeader(udp) == 0 ||
        udp.GetDestinationPort() != aodv::RoutingProtocol::AODV_PORT)
    {
        return;
    }
    copy->RemoveHeader(type);
    g_count.Add(g_count.routing);
    // Of replies only Hello messages are broadcast.
    if (type.Get() == aodv::AODVTYPE_RREP && (ip.GetDestination().Get() & 0xff) == 0xff)
    {
        g_count.Add(g_count.hellos);
    }
}

// What the template below defines: AODV's list of neighbours, which is private.
aodv::Neighbors& NeighboursOf(aodv::RoutingProtocol& protocol);

template <aodv::Neighbors aodv::RoutingProtocol::*MEMBER>
struct Access
{
    friend aodv::Neighbors& NeighboursOf(aodv::RoutingProtocol& protocol)
    {
        return protocol.*MEMBER;
    }
};

// An explicit instantiation may name private members.
template struct Access<&aodv::RoutingProtocol::m_nb>;

// Has AODV hear of all of a node's lost frames. Neighbors::ProcessTxError looks for the receiver in a list of neighbours, in
// which a node is only for some seconds after a request of it, or after data that was passed on to it. So a source does not
// hear of frames to a neighbour of which it had a reply alone; and without Hello messages a neighbour that was silent for two
// seconds is taken for gone, with all routes over it. Here all nodes are in the list, and come back when they are taken out.
void
TellOfLostFrames(Ptr<Node> node, Ptr<NetDevice> device, const Ipv4InterfaceContainer& addresses)
{
    Ptr<aodv::RoutingProtocol> protocol =
        DynamicCast<aodv::RoutingProtocol>(node->GetObject<Ipv4>()->GetRoutingProtocol());
    NS_ABORT_MSG_UNLESS(protocol, "the node does not speak AODV");
    auto know = [protocol, addresses] {
        for (uint32_t i = 0; i < addresses.GetN(); ++i)
        {
            NeighboursOf(*protocol).Update(addresses.GetAddress(i), Seconds(1e6));
        }
    };
    know();
    DynamicCast<WifiNetDevice>(device)->GetMac()->TraceConnectWithoutContext(
        "DroppedMpdu",
        Callback<void, WifiMacDropReason, Ptr<const WifiMpdu>>(
            [know](WifiMacDropReason, Ptr<const WifiMpdu>) { Simulator::ScheduleNow(know); }));
}

constexpr uint16_t PORT = 700;
// IP and UDP.
constexpr uint32_t HEADERS = 20 + 8;

// AODV over 802.11 on nodes that have places: their addresses.
Ipv4InterfaceContainer
InstallAodv(const Options& options, const NodeContainer& nodes)
{
    // 50 packets, and the one that the MAC is sending, which ns-3 leaves in the queue.
    NetDeviceContainer devices = InstallWifi(options, nodes, 51);

    // The constants of RFC 3561 section 10, which are our defaults; failures of the link layer in place of Hello messages.
    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(options.hello));
    aodv.Set("MyRouteTimeout", TimeValue(Seconds(6)));
    aodv.Set("DeletePeriod", TimeValue(Seconds(15)));
    if (options.scene == "mobility")
    {
        // Ours asks for no gratuitous replies.
        aodv.Set("GratuitousReply", BooleanValue(false));
    }
    InternetStackHelper internet;
    internet.SetRoutingHelper(aodv);
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // The MAC's queue is all that waits.
    TrafficControlHelper().Uninstall(devices);
    // No ARP: its requests would be lost to the hidden terminals of a saturated chain.
    for (uint32_t i = 0; i < nodes.GetN(); ++i)
    {
        Ptr<Ipv4L3Protocol> ip = nodes.Get(i)->GetObject<Ipv4L3Protocol>();
        ip->TraceConnectWithoutContext("Tx", MakeCallback(&CountRouting));
        Ptr<ArpCache> cache = ip->GetInterface(1)->GetArpCache();
        for (uint32_t j = 0; j < nodes.GetN(); ++j)
        {
            ArpCache::Entry* entry = cache->Add(interfaces.GetAddress(j));
            entry->SetMacAddress(devices.Get(j)->GetAddress());
            // AODV knows a neighbour's MAC address, and so its lost frames, by a permanent entry only.
            if (options.fixedRoutes)
            {
                entry->MarkAutoGenerated();
            }
            else
            {
                entry->MarkPermanent();
            }
        }
        if (options.feedback)
        {
            TellOfLostFrames(nodes.Get(i), devices.Get(i), interfaces);
        }
    }
    return interfaces;
}

// A flow of datagrams that begins then.
void
StartFlow(const Options& options, Ptr<Node> from, Ptr<Node> to, Ipv4Address address, Time begin)
{
    Ptr<Socket> sink = Socket::CreateSocket(to, UdpSocketFactory::GetTypeId());
    sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    sink->SetRecvCallback(MakeCallback(&Drain));
    Ptr<Socket> source = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
    source->Connect(InetSocketAddress(address, PORT));
    Simulator::Schedule(begin,
                        &SendDatagram,
                        source,
                        options.bytes - HEADERS,
                        NanoSeconds(std::llround(1e9 / options.rate)));
}

// Scene "aodv": a chain with a flow from its first node to its last.
void
SetUpAodv(const Options& options)
{
    NodeContainer nodes(options.stations + 1);
    for (uint32_t i = 0; i <= options.stations; ++i)
    {
        nodes.Get(i)->AggregateObject(At(options.distance * i, 0.0));
    }
    Ipv4InterfaceContainer interfaces = InstallAodv(options, nodes);
    uint32_t last = options.stations;
    StartFlow(options, nodes.Get(0), nodes.Get(last), interfaces.GetAddress(last), Seconds(BEGIN));
}

// Scene "mobility": nodes move as a file says; each source sends to the node half of all nodes further on.
void
SetUpMobility(const Options& options)
{
    NodeContainer nodes(options.stations);
    Ns2MobilityHelper(options.movements).Install(nodes.Begin(), nodes.End());
    Ipv4InterfaceContainer interfaces = InstallAodv(options, nodes);
    for (uint32_t i = 0; i < options.sources; ++i)
    {
        uint32_t to = i + options.stations / 2;
        Time begin = Seconds(BEGIN) + MilliSeconds(23 * i);
        StartFlow(options, nodes.Get(i), nodes.Get(to), interfaces.GetAddress(to), begin);
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    CommandLine line(__FILE__);
    line.AddValue("scene", "star, hidden, prr, dcf, aodv or mobility", options.scene);
    line.AddValue("stations", "senders, hops of a chain, or nodes that move", options.stations);
    line.AddValue("rate", "frames per second of each sender; 0: without end", options.rate);
    line.AddValue("bytes", "of a PSDU, MPDU or IP packet", options.bytes);
    line.AddValue("distance", "metres", options.distance);
    line.AddValue("other-distance", "metres of the second hidden sender", options.otherDistance);
    line.AddValue("exponent", "of the path loss", options.exponent);
    line.AddValue("mode", "of 802.11 frames", options.mode);
    line.AddValue("rts", "RTS and CTS", options.rts);
    line.AddValue("range", "metres", options.range);
    line.AddValue("sensed", "metres", options.sensed);
    line.AddValue("whole-cca", "assessments observe all of their time", options.wholeCca);
    line.AddValue("fixed-routes", "AODV hears nothing of lost frames", options.fixedRoutes);
    line.AddValue("hello", "AODV sends Hello messages", options.hello);
    line.AddValue("feedback", "AODV hears of all lost frames", options.feedback);
    line.AddValue("movements", "file of movements, in the format of ns-2", options.movements);
    line.AddValue("sources", "nodes that send, of those that move", options.sources);
    line.AddValue("seconds", "that are counted", options.seconds);
    line.AddValue("warmup", "seconds before, which are not", options.warmup);
    line.AddValue("run", "run of the random numbers", options.run);
    line.Parse(argc, argv);
    RngSeedManager::SetRun(options.run);
    g_count.from = Seconds(BEGIN + options.warmup);

    Kept kept;
    if (options.scene == "aodv")
    {
        SetUpAodv(options);
    }
    else if (options.scene == "mobility")
    {
        SetUpMobility(options);
    }
    else if (options.scene == "dcf")
    {
        SetUpWifi(options, kept);
    }
    else
    {
        SetUpSensors(options, kept);
    }
    Simulator::Stop(Seconds(BEGIN + options.warmup + options.seconds));
    Simulator::Run();
    std::cout << std::setprecision(12) << "{\"delivered\":" << g_count.delivered << ",\"on_air\":" << g_count.onAir
              << ",\"offered\":" << g_count.offered << ",\"routing\":" << g_count.routing
              << ",\"hellos\":" << g_count.hellos << "}\n";
    Simulator::Destroy();
    return 0;
}
