// One run of a cell with ns-3's TCP: bulk flows over one bottleneck, measured from the first SYN or from a warm-up on. Its queue drops from
// its tail, or is one of ns-3's queue discs. Prints one line of JSON. `compare/ns3.rs` and `compare/aqm.rs` compile and start this
// program; docs/evidence/validation.md says what is compared.
//
// Every attribute of ns-3 can be set from the command line, which is how causes of differences are tested:
//     bottleneck --controller=cubic --ns3::TcpCubic::HyStart=false

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

using namespace ns3;

namespace
{

// Bytes of an IPv6 packet with a full segment.
constexpr uint32_t PACKET = 1500;
// Bytes of IPv6 header, TCP header and timestamps.
constexpr uint32_t HEADERS = 40 + 20 + 12;
// Bytes that the point-to-point device puts before each packet.
constexpr uint32_t PPP = 2;
// More than link and queue hold together, in bytes, several times.
constexpr uint32_t BUFFER = 8 << 20;
// Seconds until the first flow begins: the nodes have sent what IPv6 sends by itself.
constexpr double BEGIN = 20.0;
// Seconds between two samples.
constexpr double TICK = 0.1;

// One connection, as its sender sees it.
class Flow
{
  public:
    Flow(Ptr<Node> node, const Address& destination)
        : m_destination(destination),
          m_socket(DynamicCast<TcpSocketBase>(Socket::CreateSocket(node, TcpSocketFactory::GetTypeId())))
    {
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_socket->TraceConnectWithoutContext("HighestRxAck", MakeCallback(&Flow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("RTT", MakeCallback(&Flow::Smoothed, this));
        m_socket->TraceConnectWithoutContext("RTO", MakeCallback(&Flow::TimerSet, this));
        m_socket->TraceConnectWithoutContext("RWND", MakeCallback(&Flow::Offered, this));
        m_socket->SetConnectCallback(MakeCallback(&Flow::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->SetSendCallback(MakeCallback(&Flow::Fill, this));
    }

    void Connect()
    {
        m_begun = true;
        m_socket->Connect(m_destination);
    }

    bool HasBegun() const
    {
        return m_begun;
    }

    // Smoothed round-trip time in seconds; 0 before the first sample.
    double Srtt() const
    {
        return m_srtt;
    }

    // A buffer holds no further segment: the congestion window is not the limit.
    bool IsLimited() const
    {
        uint32_t outstanding = m_highest - m_unacknowledged;
        return m_unacknowledged > 0 && outstanding + PACKET > std::min(m_window, BUFFER);
    }

    // Bytes acknowledged, without the SYN.
    uint32_t Acked() const
    {
        return std::max<uint32_t>(m_unacknowledged, 1) - 1;
    }

    // What is acknowledged from now on counts.
    void Mark()
    {
        m_before = Acked();
    }

    uint32_t m_before{0};
    uint32_t m_retransmissions{0};
    uint32_t m_timeouts{0};
    // Bytes of the largest payload.
    uint32_t m_payload{0};

  private:
    void Connected(Ptr<Socket>)
    {
        Fill(m_socket, m_socket->GetTxAvailable());
    }

    // The buffer never runs dry. One packet for each segment: ns-3 would have to cut and to join others.
    void Fill(Ptr<Socket>, uint32_t available)
    {
        uint32_t segment = PACKET - HEADERS;
        for (; available >= segment; available -= segment)
        {
            m_socket->Send(Create<Packet>(segment), 0);
        }
    }

    // A retransmission is a segment of data that begins below the highest sequence number sent.
    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        uint32_t sequence = header.GetSequenceNumber().GetValue();
        if (packet->GetSize() > 0 && sequence < m_highest)
        {
            ++m_retransmissions;
        }
        m_highest = std::max(m_highest, sequence + packet->GetSize());
        m_payload = std::max(m_payload, packet->GetSize());
    }

    void Acknowledged(SequenceNumber32, SequenceNumber32 now)
    {
        m_unacknowledged = now.GetValue();
    }

    // ns-3's trace "RTT" has the smoothed round-trip time (RttEstimator::GetEstimate).
    void Smoothed(Time, Time now)
    {
        m_srtt = now.GetSeconds();
    }

    // Nothing but a time-out doubles the RTO to the nanosecond. The state CA_LOSS would not show the second time-out in
    // a row.
    void TimerSet(Time before, Time now)
    {
        if (now == before + before)
        {
            ++m_timeouts;
        }
    }

    void Offered(uint32_t, uint32_t now)
    {
        m_window = now;
    }

    Address m_destination;
    Ptr<TcpSocketBase> m_socket;
    bool m_begun{false};
    double m_srtt{0.0};
    // Sequence numbers; a connection begins with 0.
    uint32_t m_highest{0};
    uint32_t m_unacknowledged{0};
    // The receiver's window in bytes.
    uint32_t m_window{BUFFER};
};

void
Drain(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
    }
}

void
Accept(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&Drain));
}

// What is sampled every 100 ms.
struct Samples
{
    const std::vector<std::unique_ptr<Flow>>& flows;
    double srtt{0.0};
    uint32_t count{0};
    uint32_t limited{0};

    void Take()
    {
        for (const auto& flow : flows)
        {
            if (flow->HasBegun())
            {
                srtt += flow->Srtt();
                limited += flow->IsLimited();
                ++count;
            }
        }
        Simulator::Schedule(Seconds(TICK), &Samples::Take, this);
    }
};

// The bottleneck's queue when it was fullest.
struct Peak
{
    uint32_t packets{0};
    uint32_t bytes{0};
    Ptr<Queue<Packet>> queue;

    void Grown(uint32_t, uint32_t now)
    {
        if (now > packets)
        {
            packets = now;
            bytes = queue->GetNBytes() - now * PPP;
        }
    }
};

// How long packets wait for the transmitter: in the queue disc, and in the queue of the device, which has room for one.
struct Waits
{
    std::unordered_map<uint64_t, Time> came;
    double sum{0.0};
    uint64_t count{0};
    bool counts{false};

    void Came(Ptr<const QueueDiscItem> item)
    {
        came[item->GetPacket()->GetUid()] = Simulator::Now();
    }

    void Dropped(Ptr<const QueueDiscItem> item)
    {
        came.erase(item->GetPacket()->GetUid());
    }

    void Left(Time sojourn)
    {
        if (counts)
        {
            sum += sojourn.GetSeconds();
            ++count;
        }
    }

    void Begins(Ptr<const Packet> packet)
    {
        auto found = came.find(packet->GetUid());
        if (found == came.end())
        {
            return;
        }
        Left(Simulator::Now() - found->second);
        came.erase(found);
    }

    void Begin()
    {
        counts = true;
    }

    double Mean() const
    {
        return sum / std::max<double>(static_cast<double>(count), 1);
    }
};

// Datagrams that come at the times of a file, whatever becomes of them. A line has the time in nanoseconds and the number of a flow.
class Arrivals
{
  public:
    Arrivals(Ptr<Node> from, Ptr<Node> to, Ipv6Address address, const std::string& file, double begin, double warmup)
        : m_file(file),
          m_begin(Seconds(begin)),
          m_warmup(Seconds(begin + warmup)),
          m_from(from),
          m_to(to),
          m_address(address)
    {
        Next();
    }

    // Datagrams that came after the warm-up.
    uint64_t m_received{0};

  private:
    void Next()
    {
        int64_t nanoseconds = 0;
        uint32_t flow = 0;
        if (m_file >> nanoseconds >> flow)
        {
            Time at = m_begin + NanoSeconds(nanoseconds);
            Simulator::Schedule(at - Simulator::Now(), &Arrivals::Send, this, flow);
        }
    }

    void Send(uint32_t flow)
    {
        while (m_sockets.size() <= flow)
        {
            auto port = static_cast<uint16_t>(9000 + m_sockets.size());
            Ptr<Socket> sink = Socket::CreateSocket(m_to, UdpSocketFactory::GetTypeId());
            sink->Bind(Inet6SocketAddress(Ipv6Address::GetAny(), port));
            sink->SetRecvCallback(MakeCallback(&Arrivals::Received, this));
            m_sinks.push_back(sink);
            Ptr<Socket> source = Socket::CreateSocket(m_from, UdpSocketFactory::GetTypeId());
            source->Bind6();
            source->Connect(Inet6SocketAddress(m_address, port));
            m_sockets.push_back(source);
        }
        m_sockets[flow]->Send(Create<Packet>(PACKET - 48), 0);
        Next();
    }

    void Received(Ptr<Socket> socket)
    {
        while (socket->Recv())
        {
            m_received += Simulator::Now() >= m_warmup;
        }
    }

    std::ifstream m_file;
    Time m_begin;
    Time m_warmup;
    Ptr<Node> m_from;
    Ptr<Node> m_to;
    Ipv6Address m_address;
    std::vector<Ptr<Socket>> m_sockets;
    std::vector<Ptr<Socket>> m_sinks;
};

// The queue disc of that name, with the constants of its standard; of RED those of its authors, as ours has them.
TrafficControlHelper
Discipline(const std::string& name, uint32_t queue, uint64_t rate)
{
    TrafficControlHelper helper;
    QueueSizeValue most(QueueSize(QueueSizeUnit::PACKETS, queue));
    if (name == "red")
    {
        helper.SetRootQueueDisc("ns3::RedQueueDisc",
                                "MaxSize", most,
                                "MinTh", DoubleValue(5),
                                "MaxTh", DoubleValue(15),
                                "LInterm", DoubleValue(10),
                                "QW", DoubleValue(0.002),
                                "Gentle", BooleanValue(true),
                                // As the paper has it. ns-2 and ns-3 wait for 1/p packets after each drop.
                                "Wait", BooleanValue(false),
                                // How fast the mean falls while nothing waits: by the packets that could have gone.
                                "LinkBandwidth", DataRateValue(DataRate(rate)),
                                "MeanPktSize", UintegerValue(PACKET));
    }
    else if (name == "codel")
    {
        helper.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", most);
    }
    else if (name == "pie")
    {
        helper.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", most);
    }
    else
    {
        helper.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", most);
    }
    return helper;
}

void
SetDefaults(const std::string& controller)
{
    std::string type = controller == "cubic" ? "ns3::TcpCubic" : "ns3::TcpLinuxReno";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(type)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PACKET - HEADERS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10)); // RFC 6928
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    // As Linux and our TCP: an acknowledgement for 2 segments or after 40 ms.
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    // As Linux and our TCP: RTO = SRTT + max(200 ms, 4 RTTVAR). ns-3's own minimum is 1 s (RFC 6298 section 2.4).
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));
    // RFC 6298 section 2.1; ns-3's own is 3 s.
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    // As Linux: 15. With ns-3's 6, a connection would give up within a run.
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    // RFC 8289 section 5.5: no packet is dropped while one MTU or less waits. ns-3 asks for less than this.
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(PACKET + 1));
    // No duplicate address detection, one router solicitation: the link carries nothing but the flows.
    Config::SetDefault("ns3::Icmpv6L4Protocol::DAD", BooleanValue(false));
    Config::SetDefault("ns3::Icmpv6L4Protocol::RsMaxRetransmissionCount", UintegerValue(1));
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string controller = "cubic";
    uint64_t rate = 10'000'000;
    double delay = 20.0;
    uint32_t queue = 34;
    uint32_t flowCount = 1;
    double loss = 0.0;
    double seconds = 20.0;
    double warmup = 0.0;
    std::string disc = "none";
    std::string arrivals;
    uint64_t run = 1;

    // The defaults come first: the command line may change them.
    for (int i = 1; i < argc; ++i)
    {
        std::string argument = argv[i];
        if (argument.rfind("--controller=", 0) == 0)
        {
            controller = argument.substr(argument.find('=') + 1);
        }
    }
    SetDefaults(controller);
    CommandLine line(__FILE__);
    line.AddValue("controller", "reno or cubic", controller);
    line.AddValue("rate", "bit/s of the link", rate);
    line.AddValue("delay", "one-way delay in ms", delay);
    line.AddValue("queue", "packets that may wait for the link", queue);
    line.AddValue("flows", "connections, which begin 10 ms apart", flowCount);
    line.AddValue("loss", "probability that a packet towards the receiver is lost", loss);
    line.AddValue("seconds", "time measured, from the first SYN", seconds);
    line.AddValue("disc", "none, red, codel, pie or fq-codel", disc);
    line.AddValue("warmup", "time after the first SYN that does not count for goodput and waits", warmup);
    line.AddValue("arrivals", "file with the times of datagrams, which take the place of connections", arrivals);
    line.AddValue("run", "run of the random numbers", run);
    line.Parse(argc, argv);
    RngSeedManager::SetRun(run);

    NodeContainer nodes(2);
    PointToPointHelper link;
    // A full packet and its PPP header take as long as the packet alone does at the cell's rate.
    auto bits = static_cast<uint64_t>(static_cast<double>(rate) * (PACKET + PPP) / PACKET);
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bits)));
    link.SetDeviceAttribute("Mtu", UintegerValue(PACKET));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay / 1e3)));
    // Without flow control no queue disc is put before the device: its own queue is all that waits. With it the device has room for one.
    bool hasDisc = disc != "none";
    if (!hasDisc)
    {
        link.DisableFlowControl();
    }
    uint32_t room = hasDisc ? 1 : queue;
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, room)));
    NetDeviceContainer devices = link.Install(nodes);
    DynamicCast<PointToPointNetDevice>(devices.Get(1))
        ->GetQueue()
        ->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 100'000));

    InternetStackHelper().Install(nodes);
    Waits waits;
    if (hasDisc)
    {
        NetDeviceContainer first(devices.Get(0));
        QueueDiscContainer discs = Discipline(disc, queue, rate).Install(first);
        // TCP's queues are what the disc makes of them: there its own wait counts, without that in the device.
        if (arrivals.empty())
        {
            discs.Get(0)->TraceConnectWithoutContext("SojournTime", MakeCallback(&Waits::Left, &waits));
        }
        else
        {
            discs.Get(0)->TraceConnectWithoutContext("Enqueue", MakeCallback(&Waits::Came, &waits));
            discs.Get(0)->TraceConnectWithoutContext("Drop", MakeCallback(&Waits::Dropped, &waits));
            devices.Get(0)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Waits::Begins, &waits));
        }
    }
    Ipv6AddressHelper addresses("fd00::", Ipv6Prefix(64));
    Ipv6InterfaceContainer interfaces = addresses.Assign(devices);

    if (loss > 0.0)
    {
        Ptr<RateErrorModel> losses = CreateObject<RateErrorModel>();
        losses->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        losses->SetRate(loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(losses));
    }

    Peak peak;
    peak.queue = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
    peak.queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Peak::Grown, &peak));

    constexpr uint16_t PORT = 80;
    Ptr<Socket> sink = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
    sink->Bind(Inet6SocketAddress(Ipv6Address::GetAny(), PORT));
    sink->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Accept));
    sink->Listen();

    std::vector<std::unique_ptr<Flow>> flows;
    for (uint32_t i = 0; i < flowCount; ++i)
    {
        Inet6SocketAddress destination(interfaces.GetAddress(1, 1), PORT);
        flows.push_back(std::make_unique<Flow>(nodes.Get(0), destination));
        Simulator::Schedule(Seconds(BEGIN) + MilliSeconds(10) * i, &Flow::Connect, flows.back().get());
    }
    std::unique_ptr<Arrivals> datagrams;
    if (!arrivals.empty())
    {
        datagrams = std::make_unique<Arrivals>(nodes.Get(0), nodes.Get(1), interfaces.GetAddress(1, 1), arrivals, BEGIN, warmup);
    }
    for (const auto& flow : flows)
    {
        Simulator::Schedule(Seconds(BEGIN + warmup), &Flow::Mark, flow.get());
    }
    Simulator::Schedule(Seconds(BEGIN + warmup), &Waits::Begin, &waits);
    Samples samples{flows};
    Simulator::Schedule(Seconds(BEGIN + TICK), &Samples::Take, &samples);
    Simulator::Stop(Seconds(BEGIN + seconds) + NanoSeconds(1));
    Simulator::Run();

    std::cout << std::setprecision(12) << "{\"flows\":[";
    const char* separator = "";
    for (const auto& flow : flows)
    {
        std::cout << separator << "{\"acked\":" << flow->Acked() - flow->m_before << ",\"again\":" << flow->m_retransmissions
                  << ",\"timeouts\":" << flow->m_timeouts << ",\"mss\":" << flow->m_payload << "}";
        separator = ",";
    }
    double count = std::max<uint32_t>(samples.count, 1);
    double packet = peak.bytes / std::max<double>(peak.packets, 1);
    std::cout << "],\"packet\":" << packet << ",\"srtt\":" << samples.srtt / count << ",\"limited\":" << samples.limited / count
              << ",\"received\":" << (datagrams ? datagrams->m_received : 0) << ",\"wait\":" << waits.Mean() << "}\n";
    Simulator::Destroy();
    return 0;
}
