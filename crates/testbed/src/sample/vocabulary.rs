//! The words that generated files are made of.

pub(super) const HOSTS: [&str; 14] = [
    "gw-north", "gw-south", "web-01", "web-02", "db-01", "db-02", "mail", "files", "build-03", "cam-gate",
    "ntp", "ldap-01", "print-2f", "backup",
];

pub(super) const USERS: [&str; 24] = [
   
    "maria", "jonas", "root", "deploy", "aylin", "postgres", "svetlana", "backup", "kofi", "nagios", "chen",
    "ana", "henrik", "www-data", "fatima", "oliver", "priya", "tomasz", "lucia", "git", "yuki", "samuel",
    "elena", "guest",
];

pub(super) const FAMILY: [&str; 32] = [
    "Schneider", "Okafor", "Nguyen", "Garcia", "Lindqvist", "Haddad", "Kowalski", "Tanaka", "Moreau",
    "Silva", "Novak", "Demir", "Rossi", "Ivanova", "Mensah", "Larsen", "Fischer", "Papadopoulos", "Kim",
    "Byrne", "Almeida", "Horvat", "Weber", "Singh", "Jansen", "Castro", "Virtanen", "Ortiz", "Becker",
    "Dubois", "Mbeki", "Sato",
];

pub(super) const GIVEN: [&str; 28] = [
    "Maria", "Jonas", "Aylin", "Svetlana", "Kofi", "Chen", "Ana", "Henrik", "Fatima", "Oliver", "Priya",
    "Tomasz", "Lucia", "Yuki", "Samuel", "Elena", "Pierre", "Ingrid", "Amara", "Diego", "Katarina", "Omar",
    "Grace", "Mateo", "Hanna", "Viktor", "Leila", "Arthur",
];

pub(super) const CITIES: [&str; 20] = [
    "Hamburg", "Nairobi", "Lisbon", "Krakow", "Tromso", "Valparaiso", "Izmir", "Cork", "Dakar", "Osaka",
    "Utrecht", "Malmo", "Trieste", "Gdansk", "Bergen", "Porto", "Accra", "Tallinn", "Leipzig", "Bilbao",
];

pub(super) const STREETS: [&str; 16] = [
    "Harbour Road", "Station Street", "Mill Lane", "Market Square", "Church Street", "Kanalweg",
    "Rua do Sol", "Park Avenue", "Lime Grove", "Bahnhofstrasse", "Quayside", "Old Post Road",
    "Victoria Terrace", "Linden Allee", "Via Roma", "Bridge End",
];

pub(super) const PRODUCTS: [&str; 30] = [
    "ball valve DN25", "pressure sensor 0-16 bar", "gasket set", "hydraulic hose 3/8",
    "control relay 24V", "bearing 6204-2RS", "cable gland M20", "circuit breaker C16",
    "temperature probe PT100", "LED floodlight 50W", "pump seal kit", "flange DN50 PN16", "DIN rail 35mm",
    "solenoid valve 1/2", "motor contactor", "grease cartridge", "terminal block grey",
    "oil filter HX-44", "timing belt 8M", "level switch", "frequency drive 2.2kW", "hex bolt M12x60",
    "safety goggles", "work gloves L", "air filter G4", "butterfly valve DN80", "patch cable 3m",
    "fuse 10A gG", "thermal paste", "spare battery 12V",
];

pub(super) const SITES: [&str; 6] = ["ham", "nbo", "lis", "krk", "tos", "vap"];

pub(super) const PATHS: [&str; 22] = [
    "/", "/api/v2/orders", "/api/v2/stock", "/login", "/static/app.js", "/static/style.css",
    "/api/v2/sites/ham/status", "/images/logo.svg", "/reports/daily", "/api/v2/customers", "/health",
    "/search", "/api/v2/telemetry", "/downloads/manual.pdf", "/favicon.ico", "/api/v2/invoices",
    "/admin/users", "/wiki/Pumps", "/wiki/Start", "/api/v2/shipments", "/robots.txt", "/api/v2/session",
];

pub(super) const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "curl/8.5.0", "site-sync/3.2 (+https://intra.example/sync)",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148",
    "kube-probe/1.29",
];

/// Words of running text, the most frequent first.
pub(super) const WORDS: [&str; 209] = [
    "the", "of", "and", "to", "a", "in", "is", "for", "be", "on", "with", "that", "it", "by", "must",
    "are", "as", "not", "or", "at", "from", "this", "pump", "valve", "when", "pressure", "station", "if",
    "before", "after", "line", "check", "water", "each", "shift", "may", "site", "report", "open",
    "close", "flow", "level", "tank", "operator", "motor", "alarm", "should", "value", "control",
    "temperature", "start", "stop", "than", "until", "power", "maintenance", "supply", "system",
    "between", "filter", "sensor", "record", "order", "reading", "manual", "safety", "replace", "seal",
    "more", "only", "unit", "main", "second", "minutes", "hours", "every", "during", "panel", "switch",
    "room", "section", "limit", "normal", "bearing", "call", "inspect", "clean", "oil", "test", "cable",
    "drive", "inlet", "outlet", "discharge", "suction", "relief", "bypass", "local", "remote", "display",
    "engineer", "supervisor", "written", "permit", "work", "area", "tool", "spare", "part", "stock",
    "delivery", "customer", "invoice", "contract", "network", "link", "backup", "server", "signal",
    "cabinet", "earth", "voltage", "current", "phase", "fuse", "breaker", "isolate", "lock", "tag",
    "release", "reset", "confirm", "note", "date", "signature", "copy", "archive", "procedure", "step",
    "figure", "table", "annex", "drawing", "revision", "approved", "draft", "vibration", "noise", "leak",
    "corrosion", "wear", "clearance", "torque", "coupling", "shaft", "impeller", "casing", "gasket",
    "flange", "bolt", "washer", "thread", "grease", "lubricant", "coolant", "chlorine", "sample",
    "laboratory", "turbidity", "reservoir", "intake", "screen", "sluice", "weir", "culvert", "catchment",
    "rainfall", "forecast", "storm", "overflow", "telemetry", "gateway", "antenna", "modem", "battery",
    "charger", "generator", "diesel", "exhaust", "ventilation", "humidity", "condensation", "insulation",
    "cladding", "scaffold", "harness", "helmet", "goggles", "gloves", "extinguisher", "assembly",
    "evacuation", "rescue", "ambulance", "hospital", "insurance", "certificate", "calibration",
    "tolerance",
];
